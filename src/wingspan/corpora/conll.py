"""Columns: one word on each line, a blank line after each sentence, and one or several columns of tags.

Several tag columns are layers of nested entities, as in GermEval 2014. Each sentence is one document. A file is read
first for its layout, then for its sentences, so that a file of any size needs the memory of one sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from wingspan.corpora.checks import SHAPE, WORDS
from wingspan.corpora.columns import DOCUMENT_MARK, EMPTY, Block, Layout, blocks, find_layout, is_tag
from wingspan.corpora.files import BYTE_ORDER_MARK, atomic_write, numbered
from wingspan.corpora.formats import CorpusError, Format, Holds, Problems
from wingspan.corpora.kept_keys import changed
from wingspan.corpora.tags import SCHEMES, TaggedSpan, spans_of, tags_of
from wingspan.corpora.word_level import in_words
from wingspan.text import Document, Entity, Span

_HOLDS = Holds(
    discontinuous=False,
    exact_text=False,
    documents_without_words=False,
    words=True,
    groups=True,
    ids=False,
    document_keys=frozenset({"comments", "columns"}),
)
_UNKNOWN = "_"


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The sentences of a file whose columns and tagging scheme are found out and reported as a note."""
    return read_conll(path, problems)


def read_conll(
    path: Path,
    problems: Problems,
    *,
    token_column: int | None = None,
    tag_columns: Sequence[int] | None = None,
    scheme: str | None = None,
) -> Iterator[Document]:
    """The sentences of a file. Columns count from 0, or from the end if negative; what is not given is found out."""
    if scheme is not None and scheme not in SCHEMES:
        raise CorpusError(f"{path}: unknown tagging scheme {scheme!r}; use one of {', '.join(SCHEMES)}")
    layout = find_layout(path, token_column, tag_columns, scheme)
    if layout is None:
        return
    problems.note(path, layout.in_words())
    repairs = 0
    for block in blocks(path, layout, problems):
        document, broken = _document(block, layout, numbered(path, block.number))
        repairs += broken
        yield document
    if repairs:
        problems.note(path, f"{repairs} tags break the scheme {layout.scheme}; they are read as conlleval reads them")


def _document(block: Block, layout: Layout, name: str) -> tuple[Document, int]:
    words = tuple(row[layout.token] for row in block.rows)
    entities: dict[TaggedSpan, Entity] = {}  # two layers may say the same
    broken = 0
    for column in layout.tags:
        spans, wrong = spans_of([row[column] for row in block.rows], layout.scheme)
        broken += wrong
        entities |= {found: Entity(found[0], (Span(*found[1:]),)) for found in spans}
    meta: dict[str, object] = {SHAPE: WORDS}
    if block.comments:
        meta["comments"] = block.comments
    if layout.others:
        meta["columns"] = [[row[column] for row in block.rows] for column in layout.others]
    return Document.from_words(name, words, tuple(entities.values()), group=block.group, meta=meta), broken


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes IOB2 with as many tag columns as the most deeply nested sentence needs, divided by tabs.

    Groups become `-DOCSTART- (name)` lines. Comments and other columns that were read are written back; a sentence that
    has fewer of them than others has _ in the rest.
    """
    kept = list(documents)  # the number of columns is the same in the whole file, and the last sentence may set it
    tagged = [_tagged(document) for document in kept]
    layers = max((len(tags) for _, tags in tagged), default=1)
    others = [_other_columns(document) for document in kept]
    width = max(map(len, others), default=0)
    group = None
    with atomic_write(path) as out:
        for number, (document, (words, tags), extra) in enumerate(zip(kept, tagged, others, strict=True)):
            head = [f"{DOCUMENT_MARK} ({document.group or ''})", ""] if document.group != group else []
            group = document.group
            columns = [words, *extra, *([[_UNKNOWN] * len(words)] * (width - len(extra))), *tags]
            columns += [["O"] * len(words)] * (layers - len(tags))
            rows = ["\t".join(row) for row in zip(*columns, strict=True)]
            _check(document, words, columns, layers)
            lines = [*head, *_comments(document), *(rows or [EMPTY])]
            if number == 0 and lines[:1] and lines[0].startswith(BYTE_ORDER_MARK):
                out.write(BYTE_ORDER_MARK)  # readers drop one, and the word has one of its own
            out.write("\n".join([*lines, "", ""]))


def _tagged(document: Document) -> tuple[list[str], list[list[str]]]:
    words, placed = in_words(document)
    spans = []
    for entity, fragments in placed:
        if len(fragments) > 1:
            raise CorpusError(
                f"document {document.id}: {entity.label!r} at {entity.start} has {len(fragments)} fragments, which "
                "columns cannot hold; convert with --lossy, or write jsonl, brat or bioc"
            )
        spans.append((entity.label, *fragments[0]))
    return words, tags_of(len(words), spans)


def _other_columns(document: Document) -> list[list[str]]:
    columns = document.meta.get("columns", [])
    size = len(document.words or ())
    fit = isinstance(columns, list) and all(isinstance(column, list) and len(column) == size for column in columns)
    return [[str(value) for value in column] for column in columns] if fit else []


def _comments(document: Document) -> list[str]:
    comments = document.meta.get("comments", [])
    lines = [str(comment) for comment in comments] if isinstance(comments, list) else []
    return [line for line in lines if line.startswith("#") and "\n" not in line]


def _changes(document: Document) -> Counter[str]:
    """Comments and columns of another shape than ours, and comments whose last column could be a tag."""
    comments = [
        line for line in _comments(document) if "\t" not in line or not is_tag(line.rstrip("\t").split("\t")[-1])
    ]
    back = {"comments": [line for line in comments if line != EMPTY], "columns": _other_columns(document)}
    return changed(document, [replace(document, meta=back)], _HOLDS)


def _check(document: Document, words: list[str], columns: list[list[str]], layers: int) -> None:
    """What would be read back as something else is refused."""
    for column in columns:
        for value in column:
            if "\t" in value or "\n" in value or not value:
                raise CorpusError(
                    f"document {document.id}: {value!r} is empty or holds a tab or line end, which columns cannot "
                    "hold; write jsonl instead"
                )
    if any(word.startswith(DOCUMENT_MARK) for word in words):
        raise CorpusError(f"document {document.id}: the word {DOCUMENT_MARK} marks a new document in columns")
    for comment in _comments(document):
        parts = comment.split("\t")
        if len(parts) == len(columns) and all(map(is_tag, parts[-layers:])):
            raise CorpusError(f"document {document.id}: the comment {comment!r} would be read as a word; shorten it")
    if "\n" in (document.group or ""):
        raise CorpusError(f"document {document.id}: the group {document.group!r} holds a line end; rename it")


FORMAT = Format(
    name="conll",
    read=read,
    write=write,
    suffixes=(".conll", ".iob", ".iob2", ".bio", ".bioes", ".tsv", ".annotated"),
    holds=_HOLDS,
    unit="words",
    description="one word on each line with tags (CoNLL, GermEval): read in IOB1, IOB2, BIOES, BILOU or BMES, written "
    "in IOB2, nested entities in further tag columns",
    changes=_changes,
)
