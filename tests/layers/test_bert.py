"""Our BERT against transformers': the same names, the same numbers."""

import json
import subprocess
import sys

import pytest
import torch
from boxes import needs_box
from tiny import sentence
from tiny_models import WORD_PIECES, tiny_bert
from transformers import AutoTokenizer, BertConfig, BertModel

import wingspan
from trainings import tiny, train_documents, untrained
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.layers import bert
from wingspan.layers.bert_blocks import attention_bias, bert_shaped
from wingspan.model import tensors

SIZES = dict(vocab_size=30, hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=12)
TOKENS = torch.randint(3, 30, (2, 9), generator=torch.Generator().manual_seed(0))
REAL = torch.ones(2, 9, dtype=torch.long)
SHORTER = REAL.clone()
SHORTER[1, 6:] = 0
SENTENCES = [sentence("the drugs in genexys"), sentence("a"), sentence("Gene in-the cell . drug")]


def both(**changes):
    """Theirs with clearly different weights, and ours with the same."""
    torch.manual_seed(0)
    theirs = BertModel(BertConfig(**{**SIZES, **changes}), add_pooling_layer=False).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    ours = bert.Bert(bert.BertConfig({**SIZES, **changes})).eval()
    ours.load_state_dict(theirs.state_dict(), strict=True)
    return ours, theirs


def alike(one, other, real=REAL):
    for ours, theirs in zip(one.hidden_states, other.hidden_states, strict=True):
        torch.testing.assert_close(ours[real.bool()], theirs[real.bool()], rtol=1e-5, atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("activation", bert.ACTIVATION_LAYERS)
@pytest.mark.parametrize("mask", [None, REAL, SHORTER])
def test_every_layer_has_the_states_of_transformers(activation, mask):
    ours, theirs = both(hidden_act=activation)
    how = {"attention_mask": mask, "output_hidden_states": True}
    alike(ours(input_ids=TOKENS, **how), theirs(input_ids=TOKENS, **how), REAL if mask is None else mask)
    vectors = torch.randn(2, 9, 8)
    alike(ours(inputs_embeds=vectors, **how), theirs(inputs_embeds=vectors, **how), REAL if mask is None else mask)


@torch.no_grad()
def test_a_mask_may_be_an_addition_to_scores_and_states_of_layers_are_kept_only_on_demand():
    ours, _ = both()
    found = ours(input_ids=TOKENS, attention_mask=attention_bias(SHORTER.bool().unsqueeze(1), torch.float32))
    wanted = ours(input_ids=TOKENS, attention_mask=SHORTER)
    torch.testing.assert_close(found.last_hidden_state[0], wanted.last_hidden_state[0])
    torch.testing.assert_close(found.last_hidden_state[1, :6], wanted.last_hidden_state[1, :6])
    assert found.hidden_states == ()


def test_its_blocks_are_berts_so_that_span_transformers_can_copy_them():
    ours, _ = both()
    assert all(map(bert_shaped, ours.encoder.layer))


def test_settings_that_are_left_out_are_those_of_transformers():
    theirs = BertConfig().to_dict()
    said = {name: theirs.get(name, value) for name, value in bert.DEFAULTS.items()}
    assert said == bert.DEFAULTS


@pytest.mark.parametrize(
    "change", [{"hidden_act": "gelu_new"}, {"position_embedding_type": "relative_key"}, {"is_decoder": True}]
)
def test_what_it_does_not_compute_it_does_not_claim(change):
    assert bert.BertConfig(SIZES).known
    assert not bert.BertConfig({**SIZES, **change}).known


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("encoder") / "bert", [*WORD_PIECES, "[MASK]"])


def saved(folder, tmp_path, **changes):
    """A saved encoder, as it was and rebuilt to predict."""
    before = PretrainedEncoder(name=str(folder), **changes).eval()
    before.save_files(tmp_path / "model")
    after = PretrainedEncoder.rebuild_to_predict(tmp_path / "model", name=str(folder), **changes).eval()
    after.load_state_dict(before.state_dict())
    return before, after


@torch.no_grad()
@pytest.mark.parametrize("unit", ["word", "piece"])
def test_a_saved_bert_predicts_without_transformers(bert_folder, unit, tmp_path):
    before, after = saved(bert_folder, tmp_path, unit=unit)
    assert isinstance(after.model, bert.Bert)
    for one, other in zip(before.tokenize(SENTENCES)[:-1], after.tokenize(SENTENCES)[:-1], strict=True):
        assert one.tolist() == other.tolist()
    assert after.tokenize.settings == before.tokenize.settings
    inputs = tensors(before.tokenize(SENTENCES), "cpu")
    torch.testing.assert_close(after(inputs).top, before(inputs).top, rtol=1e-5, atol=1e-6)


def test_what_was_loaded_to_predict_can_be_saved_and_trained_again(bert_folder, tmp_path):
    _, after = saved(bert_folder, tmp_path)
    after.save_files(tmp_path / "again")
    again = PretrainedEncoder.rebuild(tmp_path / "again", name=str(bert_folder))
    assert isinstance(again.model, BertModel)
    again.load_state_dict(after.state_dict())
    assert again.tokenize(SENTENCES).tokens.tolist() == after.tokenize(SENTENCES).tokens.tolist()
    assert AutoTokenizer.from_pretrained(tmp_path / "again").pad_token_id == after.tokenizer.pad_token_id


def change(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("encoder/config.json", {"hidden_act": "gelu_new"}),
        ("tokenizer_config.json", {"do_lower_case": False}),
        ("tokenizer_config.json", {"unk_token": "a"}),
    ],
)
def test_what_transformers_may_see_otherwise_is_left_to_it(bert_folder, tmp_path, file, changes):
    saved(bert_folder, tmp_path)
    change(tmp_path / "model" / file, **changes)
    rebuilt = PretrainedEncoder.rebuild_to_predict(tmp_path / "model", name=str(bert_folder))
    assert isinstance(rebuilt.model, bert.Bert if "unk_token" in changes else BertModel)


@pytest.mark.parametrize(
    "changes", [{"layer_norm_eps": "x"}, {"layer_norm_eps": None}, {"num_attention_heads": 3}, {"pad_token_id": 99}]
)
def test_damaged_settings_are_refused_before_anything_is_predicted(bert_folder, tmp_path, changes):
    saved(bert_folder, tmp_path)
    change(tmp_path / "model" / "encoder" / "config.json", **changes)
    with pytest.raises(ValueError, match="missing or damaged"):
        PretrainedEncoder.rebuild_to_predict(tmp_path / "model", name=str(bert_folder))


def test_special_tokens_without_a_name_are_those_of_transformers(bert_folder, tmp_path):
    before, _ = saved(bert_folder, tmp_path)
    path = tmp_path / "model" / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in settings.items() if not key.endswith("_token")}))
    after = PretrainedEncoder.rebuild_to_predict(tmp_path / "model", name=str(bert_folder))
    assert after.tokenize.settings == before.tokenize.settings


def test_a_subclass_is_rebuilt_by_its_own_method(bert_folder, tmp_path):
    class Own(PretrainedEncoder):
        @classmethod
        def rebuild(cls, folder, **settings):
            return "its own"

    assert Own.rebuild_to_predict(tmp_path) == "its own"


def test_a_warm_start_trains_the_model_of_transformers(bert_folder, tmp_path):
    recipe = tiny("bundling/span", bert=bert_folder)
    untrained("bundling/span", encoder=recipe.encoder).save_pretrained(tmp_path / "start")
    loaded = wingspan.load(tmp_path / "start", device="cpu")
    assert isinstance(loaded.learner.model.encoder.model, bert.Bert)
    trained = wingspan.train(
        recipe,
        train=train_documents(4),
        start=tmp_path / "start",
        epochs=1,
        device="cpu",
        progress=False,
    )
    assert isinstance(trained.learner.model.encoder.model, BertModel)


def test_ours_in_training_under_autocast_is_called_as_it_is(bert_folder, tmp_path):
    _, after = saved(bert_folder, tmp_path)
    with torch.autocast("cpu", torch.bfloat16):
        assert after.train()(tensors(after.tokenize(SENTENCES), "cpu")).top.isfinite().all()


def test_keys_that_name_code_are_not_saved_again(bert_folder, tmp_path):
    saved(bert_folder, tmp_path)
    path = tmp_path / "model" / "encoder" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "auto_map": {"AutoModel": "evil.Model"}}))
    PretrainedEncoder.rebuild_to_predict(tmp_path / "model", name=str(bert_folder)).save_files(tmp_path / "again")
    assert "auto_map" not in (tmp_path / "again" / "encoder" / "config.json").read_text()


@needs_box
def test_loading_the_installed_model_does_not_import_transformers():
    asked = (
        "import sys, wingspan; wingspan.load('wingspan-bio-small').predict('a'); print('transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True).stdout.strip() == "False"
