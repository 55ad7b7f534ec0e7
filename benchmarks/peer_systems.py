"""The systems of `peers.py`: one class per library, each run by the Python of that library's own environment.

A job comes as JSON on standard input, its answer goes as one line of JSON to standard output; whatever the library
prints goes to standard error. Sentences are lists of words, entities are `[first word, word after the last, label]`.
No two libraries are imported into one process, and only `Wingspan` imports ours.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from measuring import Bare, memory, take_turns, versions

Words = list[str]
Found = tuple[int, int, str]
"""An entity: first word, word after the last, label."""
Sentence = tuple[Words, list[Found]]
WARM_UP = 0.1  # the share of steps in which every system's learning rate rises, before it falls to zero


def device() -> str:
    """Where to compute: on the GPU, unless there is none or `peers.py` hides it."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def name_of_device() -> str:
    """The GPU's name, or `cpu`."""
    return torch.cuda.get_device_name() if device() == "cuda" else "cpu"


class Peer(Protocol):
    """What each library has to do."""

    batch_size: int | None
    """Sentences of a batch in prediction, as the library has it where nothing is said; None: it decides itself."""

    def train(self, job: dict[str, Any], sentences: list[Sentence]) -> None:
        """Trains with the job's encoder, labels, epochs, batch size, learning rate, seed and widest span."""
        ...

    def save(self, folder: Path) -> None:
        """Writes the trained model."""
        ...

    def load(self, folder: Path) -> None:
        """Reads it."""
        ...

    def predict(self, sentences: list[Words], batch_size: int | None) -> list[list[Found]]:
        """Entities, as if no word had been seen before."""
        ...


def steps_of(job: dict[str, Any], sentences: Sequence[Sentence]) -> int:
    """Optimizer steps of a training."""
    return int(job["epochs"] * -(-len(sentences) // job["batch_size"]))


def outermost(entities: Iterable[Found]) -> list[Found]:
    """The entities that lie in no other one, for systems that cannot have both."""
    taken: list[Found] = []
    for start, end, label in sorted(entities, key=lambda found: (found[0] - found[1], found[0])):
        if all(end <= other[0] or other[1] <= start for other in taken):
            taken.append((start, end, label))
    return sorted(taken)


def tags_of(sentence: Sentence) -> list[str]:
    """One BIO tag per word, of the outermost entities."""
    words, entities = sentence
    tags = ["O"] * len(words)
    for start, end, label in outermost(entities):
        tags[start:end] = [f"B-{label}", *[f"I-{label}"] * (end - start - 1)]
    return tags


def entities_of(tags: Sequence[str]) -> list[Found]:
    """The entities of BIO tags; an I that continues nothing begins an entity."""
    found: list[Found] = []
    for at, tag in enumerate(tags):
        kind, _, label = tag.partition("-")
        if kind == "I" and found and found[-1][1:] == (at, label):
            found[-1] = (found[-1][0], at + 1, label)
        elif kind != "O":
            found.append((at, at + 1, label))
    return found


def tag_names(labels: Sequence[str]) -> list[str]:
    """O, and B and I of each label."""
    return ["O", *(f"{kind}-{label}" for label in labels for kind in "BI")]


def trainer_settings(job: dict[str, Any], sentences: Sequence[Sentence]) -> dict[str, Any]:
    """The settings of Hugging Face's trainer, which three of the libraries build on."""
    return {
        "output_dir": job["folder"],
        "num_train_epochs": job["epochs"],
        "per_device_train_batch_size": job["batch_size"],
        "learning_rate": job["learning_rate"],
        "warmup_steps": round(WARM_UP * steps_of(job, sentences)),
        "weight_decay": 0.01,
        "seed": job["seed"],
        "report_to": "none",
        "save_strategy": "no",
        "use_cpu": device() == "cpu",
        "disable_tqdm": True,
        "dataloader_num_workers": 0,
    }


class Wingspan:
    """A recipe of ours, as `wingspan.train` trains it without dev documents: the last epoch is kept."""

    batch_size = None

    def __init__(self, recipe: str) -> None:
        self.recipe = recipe

    def train(self, job: dict[str, Any], sentences: list[Sentence]) -> None:
        """Sentences to a trained model."""

        import wingspan

        names = ("start", "end", "label")
        rows = [
            {"id": str(at), "tokens": words, "entities": [dict(zip(names, found, strict=True)) for found in entities]}
            for at, (words, entities) in enumerate(sentences)
        ]
        tagger = self.recipe.endswith("/seq")
        self.model = wingspan.train(
            self.recipe,
            train=rows,
            encoder=job["encoder"],
            epochs=job["epochs"],
            batch_size=job["batch_size"],
            learning_rate=job["learning_rate"],
            seed=job["seed"],
            settings={} if tagger else {"max_width": job["width"]},
            on_leak="allow",
            progress=False,
        )

    def save(self, folder: Path) -> None:
        """Writes the model."""

        from wingspan import checkpoint

        checkpoint.save(folder, self.model.recipe, self.model.labels, self.model.learner)

    def load(self, folder: Path) -> None:
        """Reads the model."""

        import wingspan

        self.model = wingspan.load(folder, precision="float32")

    def predict(self, sentences: list[Words], batch_size: int | None) -> list[list[Found]]:
        """Words to entities."""
        self.model.learner.model.encoder.tokenize.forget()
        documents = self.model.predict(sentences, batch_size=batch_size, is_split_into_words=True)
        found = []
        for document in documents:
            starts = {word.start: at for at, word in enumerate(document.words)}
            ends = {word.end: at + 1 for at, word in enumerate(document.words)}
            found.append([(starts[e.start], ends[e.end], e.label) for e in document.entities])
        return found


class HuggingFace:
    """`AutoModelForTokenClassification` and `Trainer` as the tutorial has them; predicts in batches of like length."""

    batch_size = 32

    def train(self, job: dict[str, Any], sentences: list[Sentence]) -> None:
        """Sentences to a trained model."""

        from transformers import (
            AutoModelForTokenClassification,
            AutoTokenizer,
            DataCollatorForTokenClassification,
            Trainer,
            TrainingArguments,
            set_seed,
        )

        set_seed(job["seed"])
        names = tag_names(job["labels"])
        self.tokenizer = AutoTokenizer.from_pretrained(job["encoder"])
        self.model = AutoModelForTokenClassification.from_pretrained(job["encoder"], num_labels=len(names))
        self.model.config.id2label = dict(enumerate(names))
        encoded = self.pieces([words for words, _ in sentences])
        rows = []
        for at, sentence in enumerate(sentences):
            labels, tags = [-100] * len(encoded["input_ids"][at]), tags_of(sentence)
            for piece, word in first_pieces(encoded.word_ids(at)):
                labels[piece] = names.index(tags[word])
            rows.append({"input_ids": encoded["input_ids"][at], "labels": labels})
        arguments = TrainingArguments(**trainer_settings(job, sentences))
        collate = DataCollatorForTokenClassification(self.tokenizer)
        Trainer(self.model, arguments, collate, train_dataset=rows).train()

    def pieces(self, sentences: list[Words]) -> Any:
        """What the tokenizer makes of words."""
        return self.tokenizer(sentences, is_split_into_words=True, truncation=True, max_length=512)

    def save(self, folder: Path) -> None:
        """Writes the model."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def load(self, folder: Path) -> None:
        """Reads the model."""

        from transformers import AutoModelForTokenClassification, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForTokenClassification.from_pretrained(folder).eval().to(device())

    def predict(self, sentences: list[Words], batch_size: int | None) -> list[list[Found]]:
        """Words to entities."""
        encoded, size = self.pieces(sentences), batch_size or self.batch_size
        order = sorted(range(len(sentences)), key=lambda at: -len(encoded["input_ids"][at]))
        found: list[list[Found]] = [[] for _ in sentences]
        names = self.model.config.id2label
        for low in range(0, len(order), size):
            batch = order[low : low + size]
            inputs = self.tokenizer.pad({"input_ids": [encoded["input_ids"][at] for at in batch]}, return_tensors="pt")
            with torch.inference_mode():
                ids = self.model(**inputs.to(device())).logits.argmax(-1).tolist()
            for at, row in zip(batch, ids, strict=True):
                tags = ["O"] * len(sentences[at])
                for piece, word in first_pieces(encoded.word_ids(at)):
                    tags[word] = names[row[piece]]
                found[at] = entities_of(tags)
        return found


def first_pieces(owners: Sequence[int | None]) -> Iterator[tuple[int, int]]:
    """The first piece of each word, and the word."""
    before = None
    for piece, word in enumerate(owners):
        if word is not None and word != before:
            yield piece, word
        before = word


class SpanMarker:
    """SpanMarker: a start and an end marker for every span, appended to the sentence. Flat.

    It pads every input to its greatest length plus 256 markers. Its default of 512 pieces would make this half as
    slow again; of the sentences here, one of GENIA's training part alone needs more than 192, and is cut.
    """

    batch_size = 4
    pieces = 192

    def train(self, job: dict[str, Any], sentences: list[Sentence]) -> None:
        """Sentences to a trained model."""

        from datasets import Dataset
        from span_marker import SpanMarkerModel, Trainer
        from transformers import TrainingArguments, set_seed

        set_seed(job["seed"])
        names = tag_names(job["labels"])
        tags = [[names.index(tag) for tag in tags_of(sentence)] for sentence in sentences]
        rows = Dataset.from_dict({"tokens": [words for words, _ in sentences], "ner_tags": tags})
        lengths = {"entity_max_length": job["width"], "model_max_length": self.pieces}
        self.model = SpanMarkerModel.from_pretrained(job["encoder"], labels=names, **lengths)
        arguments = TrainingArguments(**trainer_settings(job, sentences))
        Trainer(model=self.model, args=arguments, train_dataset=rows).train()

    def save(self, folder: Path) -> None:
        """Writes the model."""
        self.model.save_pretrained(str(folder))

    def load(self, folder: Path) -> None:
        """Reads the model."""

        from span_marker import SpanMarkerModel

        self.model = SpanMarkerModel.from_pretrained(str(folder)).to(device())

    def predict(self, sentences: list[Words], batch_size: int | None) -> list[list[Found]]:
        """Words to entities."""

        # a list of one-word sentences reads like one sentence of words, so the lists are given as a data set
        from datasets import Dataset

        found = self.model.predict(Dataset.from_dict({"tokens": sentences}), batch_size=batch_size)
        return [[(e["word_start_index"], e["word_end_index"], e["label"]) for e in row] for row in found]


class Gliner:
    """GLiNER's span architecture, with the labels of the corpus before every sentence.

    As in its own `configs/config.yaml`, what is not pretrained learns at three times the encoder's rate, entities weigh
    three times as much as other spans, and gradients are clipped at 10. With one rate of 1.5e-4 for all and its plain
    defaults it had learned to find nothing in GENIA.
    """

    batch_size = 8

    def train(self, job: dict[str, Any], sentences: list[Sentence]) -> None:
        """Sentences to a trained model."""

        from gliner import GLiNER, GLiNERConfig
        from transformers import set_seed

        set_seed(job["seed"])
        self.labels = job["labels"]
        config = GLiNERConfig(model_name=job["encoder"], name="peer", max_width=job["width"])
        self.model = GLiNER.from_config(config) if hasattr(GLiNER, "from_config") else GLiNER.load_from_config(config)
        rows = [
            {
                "tokenized_text": words,
                "ner": [[start, end - 1, label] for start, end, label in entities],
                "ner_negatives": self.labels,
            }
            for words, entities in sentences
        ]
        settings = trainer_settings(job, sentences)
        settings |= {"max_steps": -1, "warmup_ratio": 0.0, "remove_unused_columns": False}
        settings |= {"others_lr": 3 * job["learning_rate"], "focal_loss_alpha": 0.75, "max_grad_norm": 10.0}
        output = settings.pop("output_dir")
        self.model.train_model(rows, None, self.model.create_training_args(output, **settings))

    def save(self, folder: Path) -> None:
        """Writes the model."""
        self.model.save_pretrained(folder)
        (folder / "labels.json").write_text(json.dumps(self.labels))

    def load(self, folder: Path) -> None:
        """Reads the model."""

        from gliner import GLiNER

        self.labels = json.loads((folder / "labels.json").read_text())
        self.model = GLiNER.from_pretrained(str(folder), local_files_only=True, map_location=device())
        self.model.data_processor.words_splitter = given_words

    def predict(self, sentences: list[Words], batch_size: int | None) -> list[list[Found]]:
        """Words to entities."""
        texts = [" ".join(words) for words in sentences]
        rows = self.model.inference(texts, self.labels, flat_ner=self.flat, batch_size=batch_size)
        found = []
        for text, row in zip(texts, rows, strict=True):
            starts, ends = {}, {}
            for at, (_, start, end) in enumerate(given_words(text)):
                starts[start], ends[end] = at, at + 1
            found.append([(starts[e["start"]], ends[e["end"]], e["label"]) for e in row])
        return found

    flat = True


def given_words(text: str) -> Iterator[tuple[str, int, int]]:
    """The words that were joined by single spaces, and their places."""
    start = 0
    for word in text.split(" "):
        yield word, start, start + len(word)
        start += len(word) + 1


class Spacy:
    """spaCy's `ner` or `spancat` over spacy-transformers, as `spacy init config --gpu` configures them."""

    batch_size = 128

    def __init__(self, pipe: str) -> None:
        self.pipe = pipe

    def train(self, job: dict[str, Any], sentences: list[Sentence]) -> None:
        """Sentences to a trained model."""

        import spacy
        from spacy.cli.init_config import init_config
        from spacy.training import Example

        if device() == "cuda":
            spacy.require_gpu()
        spacy.util.fix_random_seed(job["seed"])
        config = init_config(lang="en", pipeline=[self.pipe], optimize="efficiency", gpu=True)
        config["components"]["transformer"]["model"]["name"] = job["encoder"]
        if self.pipe == "spancat":
            config["components"]["spancat"]["suggester"]["sizes"] = list(range(1, job["width"] + 1))
        total = steps_of(job, sentences)
        rate = config["training"]["optimizer"]["learn_rate"]
        rate |= {"warmup_steps": round(WARM_UP * total), "total_steps": total, "initial_rate": job["learning_rate"]}
        self.nlp = spacy.util.load_model_from_config(config, auto_fill=True)
        examples = [Example(self.blank(words), self.labeled(words, entities)) for words, entities in sentences]
        self.nlp.initialize(lambda: examples)
        optimizer = spacy.registry.resolve({"optimizer": self.nlp.config["training"]["optimizer"]})["optimizer"]
        shuffle = random.Random(job["seed"])
        for _ in range(job["epochs"]):
            shuffle.shuffle(examples)
            for at in range(0, len(examples), job["batch_size"]):
                self.nlp.update(examples[at : at + job["batch_size"]], drop=0.1, sgd=optimizer)
                optimizer.step_schedules()

    def blank(self, words: Words) -> Any:
        """A document of these words."""
        from spacy.tokens import Doc

        return Doc(self.nlp.vocab, words=words)

    def labeled(self, words: Words, entities: list[Found]) -> Any:
        """A document with its entities."""
        from spacy.tokens import Span

        doc, nested = self.blank(words), self.pipe == "spancat"
        found = [Span(doc, *found) for found in (entities if nested else outermost(entities))]
        if nested:
            doc.spans["sc"] = found
        else:
            doc.set_ents(found)
        return doc

    def save(self, folder: Path) -> None:
        """Writes the model."""
        self.nlp.to_disk(folder)

    def load(self, folder: Path) -> None:
        """Reads the model."""

        import spacy

        if device() == "cuda":
            spacy.require_gpu()
        self.nlp = spacy.load(folder)

    flat = True

    def predict(self, sentences: list[Words], batch_size: int | None) -> list[list[Found]]:
        """Words to entities."""
        found = []
        for doc in self.nlp.pipe(map(self.blank, sentences), batch_size=batch_size):
            if self.pipe == "ner":
                found.append([(span.start, span.end, span.label_) for span in doc.ents])
                continue
            group = doc.spans["sc"]
            ranked = sorted(zip(group.attrs["scores"], group, strict=True), key=lambda pair: -pair[0])
            spans = [(span.start, span.end, span.label_) for _, span in ranked]
            found.append(without_overlaps(spans) if self.flat else spans)
        return found


def without_overlaps(ranked: Iterable[Found]) -> list[Found]:
    """Of spans that overlap the one that comes first."""
    taken: list[Found] = []
    for found in ranked:
        if all(found[1] <= other[0] or other[1] <= found[0] for other in taken):
            taken.append(found)
    return taken


class Flair:
    """Flair's tagger over a fine-tuned transformer, without its BiLSTM and CRF, as its documentation has it. Flat."""

    batch_size = 32

    def train(self, job: dict[str, Any], sentences: list[Sentence]) -> None:
        """Sentences to a trained model."""

        import flair
        from flair.data import Corpus
        from flair.data import Sentence as FlairSentence
        from flair.datasets import FlairDatapointDataset
        from flair.embeddings import TransformerWordEmbeddings
        from flair.models import SequenceTagger
        from flair.trainers import ModelTrainer

        flair.set_seed(job["seed"])
        rows = []
        for words, entities in sentences:
            row = FlairSentence(list(words))
            for start, end, label in outermost(entities):
                row[start:end].add_label("ner", label)
            rows.append(row)
        corpus: Any = Corpus(train=FlairDatapointDataset(rows), name="peer", sample_missing_splits=False)
        embeddings = TransformerWordEmbeddings(job["encoder"], layers="-1", subtoken_pooling="first", fine_tune=True)
        options = {"use_crf": False, "use_rnn": False, "reproject_embeddings": False}
        dictionary = corpus.make_label_dictionary("ner", add_unk=False)
        self.model = SequenceTagger(
            embeddings=embeddings, tag_dictionary=dictionary, tag_type="ner", hidden_size=256, **options
        )
        ModelTrainer(self.model, corpus).fine_tune(
            job["folder"],
            learning_rate=job["learning_rate"],
            mini_batch_size=job["batch_size"],
            max_epochs=job["epochs"],
            warmup_fraction=WARM_UP,
            save_final_model=False,
            create_file_logs=False,
            create_loss_file=False,
        )

    def save(self, folder: Path) -> None:
        """Writes the model."""
        self.model.save(folder / "model.pt")

    def load(self, folder: Path) -> None:
        """Reads the model."""

        from flair.models import SequenceTagger

        self.model = SequenceTagger.load(folder / "model.pt")

    def predict(self, sentences: list[Words], batch_size: int | None) -> list[list[Found]]:
        """Words to entities."""

        from flair.data import Sentence as FlairSentence

        rows = [FlairSentence(list(words)) for words in sentences]
        self.model.predict(rows, mini_batch_size=batch_size)
        return [[(s[0].idx - 1, s[-1].idx, s.tag) for s in row.get_spans("ner")] for row in rows]


class Eznlp:
    """eznlp's boundary selection: a biaffine over all spans with smoothed borders, without its BiLSTM."""

    batch_size = 32

    def train(self, job: dict[str, Any], sentences: list[Sentence]) -> None:
        """Sentences to a trained model; what is not pretrained learns at 2e-3, as in its own scripts."""
        from transformers import AutoModel, BertTokenizer, set_seed

        stand_in_for_torchvision()
        from eznlp.dataset import Dataset
        from eznlp.model import BertLikeConfig, BoundarySelectionDecoderConfig, ExtractorConfig
        from eznlp.training import LRLambda, Trainer

        set_seed(job["seed"])
        encoder, tokenizer = (kind.from_pretrained(job["encoder"]) for kind in (AutoModel, BertTokenizer))
        self.config = ExtractorConfig(
            decoder=BoundarySelectionDecoderConfig(sb_epsilon=0.1),
            ohots=None,
            intermediate2=None,
            bert_like=BertLikeConfig(tokenizer=tokenizer, bert_like=encoder, freeze=False),
        )
        rows = Dataset([self.entry(*sentence) for sentence in sentences], self.config)
        rows.build_vocabs_and_dims()
        self.config.decoder.max_len = 512  # else that of the longest sentence of the training
        self.model = self.config.instantiate()
        pretrained = self.model.pretrained_parameters()
        known = {id(weight) for weight in pretrained}
        fresh = [weight for weight in self.model.parameters() if id(weight) not in known]
        groups = [{"params": pretrained, "lr": job["learning_rate"]}, {"params": fresh, "lr": 2e-3}]
        optimizer, total = torch.optim.AdamW(groups), steps_of(job, sentences)
        rising = LRLambda.linear_decay_lr_with_warmup(max(1, round(WARM_UP * total)), total)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rising)
        loader = torch.utils.data.DataLoader(rows, job["batch_size"], shuffle=True, collate_fn=rows.collate)  # type: ignore[arg-type]
        how = {"schedule_by_step": True, "device": torch.device(device()), "grad_clip": 5.0}
        trainer = Trainer(self.model.to(device()), optimizer=optimizer, scheduler=schedule, **how)
        for _ in range(job["epochs"]):
            trainer.train_epoch(loader)

    def entry(self, words: Words, entities: list[Found]) -> dict[str, Any]:
        """A sentence as eznlp has it."""
        from eznlp.token import TokenSequence

        chunks = [(label, start, end) for start, end, label in entities]
        return {"tokens": TokenSequence.from_tokenized_text(words), "chunks": chunks}

    def save(self, folder: Path) -> None:
        """Writes the model."""
        torch.save((self.model, self.config), folder / "model.pt")

    def load(self, folder: Path) -> None:
        """Reads the model."""
        from transformers import AutoModel, BertTokenizer  # noqa: F401  they look for torchvision themselves

        stand_in_for_torchvision()
        self.model, self.config = torch.load(folder / "model.pt", weights_only=False)

    def predict(self, sentences: list[Words], batch_size: int | None) -> list[list[Found]]:
        """Words to entities."""
        from eznlp.dataset import Dataset
        from eznlp.training import Trainer

        rows = Dataset([self.entry(words, []) for words in sentences], self.config, training=False)
        trainer = Trainer(self.model, device=torch.device(device()))
        found = trainer.predict(rows, batch_size=batch_size or self.batch_size)
        return [[(start, end, label) for label, start, end in row] for row in found]


def stand_in_for_torchvision() -> None:
    """eznlp imports it for images without declaring it, and there is no build of it for this torch without a GPU."""
    sys.modules.setdefault("torchvision", types.ModuleType("torchvision"))


SYSTEMS: dict[str, Callable[[], Peer]] = {
    "Hugging Face": HuggingFace,
    "SpanMarker": SpanMarker,
    "GLiNER": Gliner,
    "spaCy ner": lambda: Spacy("ner"),
    "spaCy spancat": lambda: Spacy("spancat"),
    "Flair": Flair,
    "eznlp": Eznlp,
}


def system_of(name: str) -> Peer:
    """The system of this name; any other name is a recipe of ours."""
    return SYSTEMS[name]() if name in SYSTEMS else Wingspan(name)


# What a process is asked to do


def cpu_seconds() -> float:
    """Processor time of this process, its threads and its children."""
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, (0, resource.RUSAGE_CHILDREN)))


def training(job: dict[str, Any]) -> dict[str, Any]:
    """Trains and saves; what it cost from sentences to a trained model, and what `then` asks of that model."""
    system, sentences = system_of(job["system"]), [(s[0], [tuple(e) for e in s[1]]) for s in job["train"]]
    began, spent = time.perf_counter(), cpu_seconds()
    system.train(job, sentences)  # type: ignore[arg-type]
    cost = {"seconds": time.perf_counter() - began, "cpu_seconds": cpu_seconds() - spent}
    Path(job["folder"]).mkdir(parents=True, exist_ok=True)
    system.save(Path(job["folder"]))
    answer = {**cost, "peak_mb": memory(), "versions": versions(), "device": name_of_device()}
    return {**answer, "then": predicting({**job, **job["then"]})} if "then" in job else answer


def predicting(job: dict[str, Any]) -> dict[str, Any]:
    """Start-up until the first entities, the entities of all sentences, and the cost beside the bare encoder."""
    system: Any = system_of(job["system"])
    system.flat = job["flat"]
    system.load(Path(job["folder"]))
    system.predict(job["sentences"][:1], system.batch_size)
    answer: dict[str, Any] = {"startup_seconds": time.time() - job["started"]}
    answer["entities"] = system.predict(job["sentences"], system.batch_size)
    answer |= {"peak_mb": memory(), "versions": versions()}
    if job["rounds"]:
        texts = job["sentences"]
        floor = Bare(job["encoder"], "cpu", torch.float32)
        ordered = floor.ordered(texts)
        sizes = {size: clocked(lambda size=size: system.predict(texts, size)) for size in {system.batch_size, 32}}
        best = min(sizes, key=lambda size: sizes[size])
        turns = take_turns(lambda: floor(ordered, 32), lambda: system.predict(texts, best), job["rounds"], warm_up=1)
        answer["turns"] = {**turns, "batch_size": best, "texts": len(texts)}
    return answer


def clocked(work: Callable[[], Any]) -> float:
    """Seconds on the clock."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    """Does one job."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not be taken for the answer
    sys.path.remove(str(Path(__file__).parent))  # `bottleneck` is the name of a package that pandas looks for
    if device() == "cuda":
        torch.set_float32_matmul_precision("high")  # for all alike
    job = json.load(sys.stdin)
    answer = {"train": training, "predict": predicting}[job["action"]](job)
    answers.write(json.dumps(answer) + "\n")
    answers.close()


if __name__ == "__main__":
    main()
