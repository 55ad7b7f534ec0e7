import json
import pickle
import shutil

import pytest
import torch
from tiny import sentence
from tiny_models import WORD_PIECES
from transformers import AutoModel, AutoTokenizer

from wingspan.corpora.word_table import key_of
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.layers.bert_blocks import attention_bias, bert_shaped
from wingspan.model import tensors
from wingspan.text import Sentence, Span

POOLINGS = {
    "first": lambda pieces: pieces[0],
    "last": lambda pieces: pieces[-1],
    "mean": lambda pieces: pieces.mean(0),
    "max": lambda pieces: pieces.max(0).values,
}
SENTENCES = [
    sentence("the drugs in genexys"),
    sentence("a"),
    sentence("Gene in-the cell . drug"),
]


def encode(encoder, sentences):
    with torch.no_grad():
        return encoder.eval()(tensors(encoder.tokenize(sentences), "cpu"))


def oracle(folder, words) -> tuple[torch.Tensor, list[int | None]]:
    """The top layer by transformers alone, and which word each piece belongs to."""
    tokenizer = AutoTokenizer.from_pretrained(folder, add_prefix_space=True)
    read = tokenizer(list(words), is_split_into_words=True, return_tensors="pt", truncation=False, padding=False)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    if model.config.is_encoder_decoder:
        model = model.encoder
    with torch.no_grad():
        top = model(**read).last_hidden_state[0]
    return top, read.word_ids()


def close(one, other) -> None:
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_word_vectors_are_pooled_from_the_pieces_transformers_makes(folder, pooling):
    encoder = PretrainedEncoder(name=str(folder), pooling=pooling)
    words = encode(encoder, SENTENCES)
    assert words.top.shape == (3, 5, encoder.size)
    for row, one in enumerate(SENTENCES):
        top, owners = oracle(folder, one.words)
        for at in range(len(one.words)):
            pieces = top[[n for n, owner in enumerate(owners) if owner == at]]
            close(words.top[row, at], POOLINGS[pooling](pieces))
        close(words.sentence[row], top[0] if encoder.tokenize.has_sentence_token else top.mean(0))


def test_pieces_can_be_the_units(folder):
    encoder = PretrainedEncoder(name=str(folder), unit="piece")
    inputs = encoder.tokenize(SENTENCES)
    words = encode(encoder, SENTENCES)
    for row, one in enumerate(SENTENCES):
        top, owners = oracle(folder, one.words)
        inside = [n for n, owner in enumerate(owners) if owner is not None]
        owned = [owners[n] for n in inside]
        close(words.top[row, : len(inside)], top[inside])
        assert inputs.unit_mask[row].sum() == len(inside)
        assert inputs.words[row, : len(inside)].tolist() == owned
        starts = [n == 0 or owned[n - 1] != owned[n] for n in range(len(owned))]
        assert inputs.starts[row, : len(inside)].tolist() == starts
        assert inputs.ends[row, : len(inside)].tolist() == [*starts[1:], True]
        assert not inputs.starts[row, len(inside) :].any()
        assert not inputs.ends[row, len(inside) :].any()


@pytest.mark.parametrize("unit", ["word", "piece"])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_padding_and_other_sentences_change_nothing(folder, unit, pooling):
    encoder = PretrainedEncoder(name=str(folder), unit=unit, pooling=pooling)
    together = encode(encoder, SENTENCES)
    for row, one in enumerate(SENTENCES):
        alone = encode(encoder, [one])
        close(together.top[row, : alone.top.shape[1]], alone.top[0])
        close(together.sentence[row], alone.sentence[0])


def test_core_and_reach_are_counted_in_units(folders):
    one = sentence("the drugs in genexys a", core=(1, 3), reach=(0, 4))
    assert PretrainedEncoder(name=str(folders["bert"])).tokenize([one]).core.tolist() == [[1, 3]]
    inputs = PretrainedEncoder(name=str(folders["bert"]), unit="piece").tokenize([one])
    assert inputs.words[0].tolist() == [0, 1, 1, 2, 3, 3, 3, 4]
    assert inputs.core.tolist() == [[1, 4]]
    assert inputs.reach.tolist() == [[0, 7]]


def odd(*words: str) -> Sentence:
    return Sentence(words, (), Span(0, len(words)), Span(0, len(words)), ())


@pytest.mark.parametrize("unit", ["word", "piece"])
def test_a_word_without_pieces_has_a_vector_and_moves_no_other(folders, unit):
    encoder = PretrainedEncoder(name=str(folders["bert"]), unit=unit)
    assert encoder.tokenizer.backend_tokenizer.encode("\u200b", add_special_tokens=False).ids == []
    unknown = WORD_PIECES.index("[UNK]")
    assert encoder.tokenize.pieces("\u200b") == (unknown,)
    close(encode(encoder, [odd("a", "\u200b", "gene")]).top, encode(encoder, [odd("a", "qqq", "gene")]).top)
    assert encoder.tokenize.measure(["a", "\u200b", "drugs"]) == [1, 1, 2]


def test_a_sentence_without_words(folder):
    for unit in ("word", "piece"):
        words = encode(PretrainedEncoder(name=str(folder), unit=unit), [odd(), odd("gene")])
        assert words.mask.tolist() == [[False], [True]]


def test_a_word_of_any_length_is_bounded(folder):
    encoder = PretrainedEncoder(name=str(folder), max_length=40)
    long = "drug" * 75_000
    (count,) = encoder.tokenize.measure([long])
    assert 1 <= count <= 64
    encoder.tokenize([odd("a", long)])
    assert len(key_of(long)) <= 256


def test_words_that_look_like_special_tokens_are_only_words(folders):
    # the mask token of this tokenizer has no row in the model
    encoder = PretrainedEncoder(name=str(folders["bert"]))
    words = encode(encoder, [odd("[MASK]", "[SEP]", "gene")])
    assert torch.isfinite(words.top).all()
    assert max(encoder.tokenize.pieces("[MASK]")) < len(WORD_PIECES)


def test_what_tokenizer_json_says_of_truncation_and_padding_is_switched_off(folders):
    stored = json.loads((folders["bert"] / "tokenizer.json").read_text())
    assert stored["truncation"]["max_length"] == 4
    assert stored["padding"]["strategy"] == {"Fixed": 16}
    encoder = PretrainedEncoder(name=str(folders["bert"]))
    inputs = encoder.tokenize([sentence("the drugxyxyxysss a drug .")])  # one word alone has more than four pieces
    assert inputs.tokens[0].tolist() == [2, 11, 5, 8, 8, 8, 7, 7, 7, 4, 5, 12, 3]
    assert inputs.token_mask.all()


def test_relative_positions_set_no_limit(folders):
    encoder = PretrainedEncoder(name=str(folders["t5"]), max_length=300)
    assert encoder.tokenize.max_length == 299  # an end and no beginning
    assert torch.isfinite(encode(encoder, [odd(*["gene"] * 299)]).top).all()


@pytest.mark.parametrize("kind", ["bert", "roberta", "bart"])
def test_the_longest_input_fits_the_positions(folders, kind):
    folder = folders[kind]
    encoder = PretrainedEncoder(name=str(folder), max_length=512)
    assert encoder.tokenize.max_length == 38  # 40 positions, two of them for the special tokens
    count = encoder.tokenize.max_length
    assert torch.isfinite(encode(encoder, [odd(*["gene"] * count)]).top).all()
    with pytest.raises((IndexError, RuntimeError)):
        encode(encoder, [odd(*["gene"] * (count + 1))])
    assert PretrainedEncoder(name=str(folder), max_length=20).tokenize.max_length == 18


def test_shapes_are_for_tokenizers_that_forget_capitals(folders):
    assert PretrainedEncoder(name=str(folders["roberta"])).shapes is None
    assert PretrainedEncoder(name=str(folders["bert"]), shapes=False).shapes is None
    encoder = PretrainedEncoder(name=str(folders["bert"]))
    before = encode(encoder, [sentence("gene in"), sentence("GENE in")]).top
    assert torch.equal(before[0], before[1])
    torch.nn.init.normal_(encoder.shapes.weight)
    after = encode(encoder, [sentence("gene in"), sentence("GENE in")]).top
    assert not torch.allclose(after[0], after[1])


@pytest.mark.parametrize("shapes", [False, True])
def test_shapes_start_without_effect_and_learn(folder, shapes):
    encoder = PretrainedEncoder(name=str(folder), shapes=shapes, pooling="mean").train()
    for part in encoder.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    inputs = tensors(encoder.tokenize(SENTENCES), "cpu")
    encoder(inputs).top[inputs.unit_mask].square().sum().backward()
    unused = {n for n, p in encoder.named_parameters() if p.grad is None}
    assert not any("shapes" in name or "layer" in name for name in unused)
    plain = PretrainedEncoder(name=str(folder), shapes=False, pooling="mean")
    close(encode(encoder, SENTENCES).top, encode(plain, SENTENCES).top)


def test_all_layers_are_there_when_asked_for(folder):
    encoder = PretrainedEncoder(name=str(folder))
    assert encode(encoder, SENTENCES).layers == ()
    depth = encoder.model.config.num_hidden_layers
    encoder.keep_layers = depth + 1
    words = encode(encoder, SENTENCES)
    assert len(words.layers) == depth + 1
    assert torch.equal(words.layers[-1], words.top)
    encoder.keep_layers = 2
    for one, other in zip(encode(encoder, SENTENCES).layers, words.layers[-2:], strict=True):
        close(one, other)


@pytest.mark.parametrize("unit", ["word", "piece"])
def test_it_is_rebuilt_from_its_files_alone(folder, unit, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(folder, source)
    settings = dict(name=str(source), unit=unit, pooling="last")
    encoder = PretrainedEncoder(**settings)
    if encoder.shapes is not None:
        torch.nn.init.normal_(encoder.shapes.weight)
    encoder.save_files(tmp_path / "model")
    shutil.rmtree(source)
    rebuilt = PretrainedEncoder.rebuild(tmp_path / "model", **settings)
    rebuilt.load_state_dict(encoder.state_dict())
    for one, other in zip(encoder.tokenize(SENTENCES)[:-1], rebuilt.tokenize(SENTENCES)[:-1], strict=True):
        assert one.tolist() == other.tolist()
    assert torch.equal(encode(rebuilt, SENTENCES).top, encode(encoder, SENTENCES).top)
    assert rebuilt.tokenize.max_length == encoder.tokenize.max_length


@pytest.mark.parametrize("file", ["encoder/config.json", "tokenizer.json"])
@pytest.mark.parametrize("content", ["{", None])
def test_rebuilding_from_damaged_files_is_one_sentence(folder, file, content, tmp_path):
    encoder = PretrainedEncoder(name=str(folder))
    encoder.save_files(tmp_path)
    if content is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_text(content)
    with pytest.raises(ValueError, match="encoder's files are missing or damaged"):
        PretrainedEncoder.rebuild(tmp_path)


def test_the_tokenizer_travels_to_workers(folder):
    tokenize = PretrainedEncoder(name=str(folder)).tokenize
    copy = pickle.loads(pickle.dumps(tokenize))
    assert copy(SENTENCES).tokens.tolist() == tokenize(SENTENCES).tokens.tolist()


def test_gradient_checkpointing_changes_no_gradient(folder):
    found = []
    for saving in (False, True):
        encoder = PretrainedEncoder(name=str(folder), gradient_checkpointing=saving, dropout=0.0)
        encoder.train()
        encoder(tensors(encoder.tokenize(SENTENCES), "cpu")).top.square().sum().backward()
        found.append([parameter.grad for parameter in encoder.model.parameters() if parameter.grad is not None])
    assert len(found[0]) == len(list(encoder.model.parameters()))
    for one, other in zip(*found, strict=True):
        close(one, other)


@pytest.mark.filterwarnings("ignore:TF32 acceleration")  # said by switching oneDNN off and on
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_smaller_dtype_gives_nearly_the_same_float32_vectors(folder, dtype):
    small = PretrainedEncoder(name=str(folder), dtype=dtype)
    assert small.model.dtype == getattr(torch, dtype)
    assert small.blocks is None
    with torch.backends.mkldnn.flags(enabled=False):  # oneDNN has no such kernels on some CPUs
        top = encode(small, SENTENCES).top
    assert top.dtype == torch.float32
    torch.testing.assert_close(top, encode(PretrainedEncoder(name=str(folder)), SENTENCES).top, rtol=0.1, atol=0.1)


def test_hidden_words_are_hidden_in_training_only(folder):
    encoder = PretrainedEncoder(name=str(folder), word_dropout=1.0, dropout=0.0, shapes=False)
    inputs = tensors(encoder.tokenize(SENTENCES[:1]), "cpu")
    (tokens,) = encoder.train()._entry(inputs)["input_ids"]
    assert tokens[inputs.unit_of_token[0] < inputs.unit_mask.shape[1]].unique().tolist() == [encoder.tokenize.hidden]
    assert encoder.tokenize.hidden < encoder.tokenize.vocabulary, "a row of the model"
    assert tokens[-1] == inputs.tokens[0, -1]
    assert torch.equal(encoder.eval()._entry(inputs)["input_ids"], inputs.tokens)
    assert torch.equal(encoder.train().model(inputs.tokens)[0], encoder.eval().model(inputs.tokens)[0])


def test_the_mask_for_gpus_changes_nothing(folder):
    encoder = PretrainedEncoder(name=str(folder)).eval()
    inputs = tensors(encoder.tokenize(SENTENCES), "cpu")
    if encoder.blocks is None or not bert_shaped(encoder.blocks[0]):
        pytest.skip("only blocks of the BERT shape take it")
    whole = encoder.model(input_ids=inputs.tokens, attention_mask=inputs.token_mask.long()).last_hidden_state
    ready = attention_bias(inputs.token_mask.unsqueeze(1), torch.float32)
    found = encoder.model(input_ids=inputs.tokens, attention_mask=ready).last_hidden_state
    assert not bool(inputs.token_mask.all())
    close(found[inputs.token_mask], whole[inputs.token_mask])
