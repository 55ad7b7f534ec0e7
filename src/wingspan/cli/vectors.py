"""`wingspan vectors`: trains word vectors with gensim, and shows the nearest neighbors of words."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.console import Console

from wingspan.cli import app
from wingspan.cli.options import CorpusFormat, Json
from wingspan.corpora.formats import is_prose, read
from wingspan.corpora.words import SPLITTERS
from wingspan.files import Problems, atomic_write, read_lines
from wingspan.views.console import say, write_json

GENSIM_LIMIT = 10_000  # gensim ignores the rest of a longer text


@app.command(epilog="Example: wingspan vectors train.jsonl --output vectors.npz --size 300 --nearest protein")
def vectors(
    texts: Annotated[
        list[Path], typer.Argument(metavar="TEXT...", help="Corpora, or .txt with a text per line; or one vector file.")
    ],
    output: Annotated[
        Path | None, typer.Option(help="Train, and write the vectors here: .npz, .txt, .txt.gz, or fastText's .bin.")
    ] = None,
    nearest: Annotated[list[str] | None, typer.Option(help="Show the words nearest to this one.")] = None,
    count: Annotated[int, typer.Option(min=1, help="How many neighbors to show.")] = 10,
    method: Annotated[
        Literal["word2vec", "fasttext"], typer.Option(help="Skip-grams of words, or of sub-words too.")
    ] = ("word2vec"),
    size: Annotated[int, typer.Option(min=1, help="Length of a vector.")] = 100,
    window: Annotated[int, typer.Option(min=1, help="How many words on each side count as context.")] = 10,
    min_count: Annotated[int, typer.Option(min=1, help="Leave out words that are rarer than this.")] = 5,
    lower_case: Annotated[bool, typer.Option("--lower-case", help="Lower-case all words.")] = False,
    splitter: Annotated[
        str, typer.Option(help="How to split text: words, alphanumeric, newswire, tweets, characters, or whitespace.")
    ] = "words",
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the text.")] = 25,
    seed: Annotated[int, typer.Option(min=0, help="With one thread, the same seed gives the same vectors.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="Threads to train with.")] = 1,
    format: CorpusFormat = None,
    json: Json = None,
) -> None:
    """Trains word vectors on text, and shows the nearest neighbors of words. Give it training text only."""
    if output is None and not nearest:
        raise ValueError("give --output FILE to train vectors, or --nearest WORD to look into a file of vectors")
    if output is None and len(texts) != 1:
        raise ValueError(f"--nearest looks into one file of vectors, not {len(texts)}")
    console = Console(stderr=json == Path("-"))
    figures: dict[str, Any] = {}
    if output is not None:
        if output.suffix not in (".npz", ".bin") and not output.name.removesuffix(".gz").endswith((".txt", ".vec")):
            raise ValueError(f"{output}: vectors are written as .npz, .txt, .txt.gz or .bin; choose one of these names")
        if output.suffix == ".bin" and method != "fasttext":
            raise ValueError(f"{output}: .bin is fastText's; choose .npz or .txt, or add --method fasttext")
        held_out = [path for path in texts if looks_held_out(path)]
        for path in held_out:
            say(console, f"warning: {path} is named like test or dev text; training on it inflates scores on it")
        problems = Problems()
        for path in texts if format is None else ():
            is_prose(path, problems)
        for note in problems.notes:
            say(console, f"note: {note}")
        settings = {"vector_size": size, "window": window, "min_count": min_count, "epochs": epochs, "seed": seed}
        model = train(method, TextWords(texts, lower_case, splitter, format), settings | {"workers": threads})
        figures |= {
            "method": method,
            "texts": [str(path) for path in texts],
            "num_texts": model.corpus_count,
            "num_words": model.corpus_total_words,
            "vocabulary": len(model.wv),
            "settings": settings,
            "lower_case": lower_case,
            "named_as_held_out": [str(path) for path in held_out],
        }
        write(model, output, figures)
        say(console, f"{model.corpus_total_words:,} words in {model.corpus_count:,} texts")
        say(console, f"{len(model.wv):,} vectors of {size} numbers")
    if nearest:
        from wingspan.encoders.vectors import nearest as nearest_of
        from wingspan.encoders.vectors import open_vectors

        near = nearest_of(open_vectors(output or texts[0]), nearest, count)
        for word in nearest:
            if word not in near:
                raise ValueError(f"{word!r} has no vector; choose another word, or train with a smaller --min-count")
        figures["nearest"] = {
            word: [{"word": other, "cosine": cosine} for other, cosine in near[word]] for word in nearest
        }
        for word in nearest:
            say(console, f"{word}: " + ", ".join(f"{other} {cosine:.2f}" for other, cosine in near[word]))
    if json is not None:
        write_json(figures, json)


@dataclass(frozen=True)
class TextWords:
    """The words of plain text, where a line is a text, and of corpora; read again on each pass, never all in memory."""

    paths: Sequence[Path]
    lower_case: bool = False
    splitter: str = "words"
    format: str | None = None

    def __iter__(self) -> Iterator[list[str]]:
        for path in self.paths:
            for words in self._of(path):
                yield from (words[start : start + GENSIM_LIMIT] for start in range(0, len(words), GENSIM_LIMIT))

    def _of(self, path: Path) -> Iterator[list[str]]:
        split = SPLITTERS[self.splitter]
        if self.format is None and is_prose(path, Problems()):
            texts = ((line, split(line).tolist()) for _, line in read_lines(path))
        else:
            documents = read(path, self.format)
            texts = ((doc.text, doc.words if doc.words is not None else split(doc.text).tolist()) for doc in documents)
        for text, spans in texts:
            yield [text[start:end].lower() if self.lower_case else text[start:end] for start, end in spans]


def train(method: str, texts: TextWords, settings: dict[str, Any]) -> Any:
    """A gensim model, trained."""
    if texts.splitter not in SPLITTERS:
        raise ValueError(f"unknown splitter {texts.splitter!r}; use one of {', '.join(SPLITTERS)}")
    try:
        from gensim.models import FastText, Word2Vec
    except ImportError as error:
        raise ValueError("training vectors needs gensim; pip install 'wingspan-ner[gensim]'") from error
    model = (FastText if method == "fasttext" else Word2Vec)(sg=1, **settings)
    model.build_vocab(texts)
    if len(model.wv) < 2:
        raise ValueError(
            f"only {len(model.wv)} different words occur {settings['min_count']} times or more; "
            "give more text, or a smaller --min-count"
        )
    model.train(texts, total_examples=model.corpus_count, epochs=model.epochs)
    return model


def looks_held_out(path: Path) -> bool:
    """Whether a file is named like test or dev text."""
    return bool(re.search(r"(^|[._-])(test|dev|valid|validation|eval)([._-]|$)", path.name, re.IGNORECASE))


def write(model: Any, path: Path, about: dict[str, Any]) -> None:
    """Writes .npz in half precision with a record of the training; GloVe text; or a fastText model with sub-words.

    Words without a vector get `<unk>`, the mean of the 100 rarest words, as in vectors that GloVe's own program writes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    words, rows = list(model.wv.index_to_key), model.wv.vectors
    if "<unk>" not in words:
        words, rows = [*words, "<unk>"], np.concatenate([rows, rows[-100:].mean(0, keepdims=True)])
    if path.suffix not in (".npz", ".bin"):
        with atomic_write(path) as out:
            out.writelines(
                f"{word} {' '.join(f'{x:.6g}' for x in row)}\n" for word, row in zip(words, rows.tolist(), strict=True)
            )
        return
    part = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        if path.suffix == ".npz":
            np.savez_compressed(part, words=words, vectors=rows.astype(np.float16), about=dumps(about))
        else:
            from gensim.models.fasttext import save_facebook_model

            save_facebook_model(model, str(part))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
