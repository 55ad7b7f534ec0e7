"""LoRA: which layers, what they compute, and that a saved model is a plain one that finds the same."""

import io
import json
import sys
from dataclasses import replace
from functools import partial

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file
from tiny import sentence
from tiny_models import tiny_t5

import wingspan
from trainings import alike, dev_documents, run_of, tiny, train_documents
from wingspan.cli.recipes import describe_model
from wingspan.encoders.lora import Lora, adapted_layers, chosen_layers, merge, put_in
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.model import tensors
from wingspan.recipe import Recipe
from wingspan.recipe_json import as_json, from_json, override
from wingspan.recipes import find
from wingspan.training.run import parameter_counts
from wingspan.training.state import load_phase

pytest.importorskip("peft", reason="the extra peft is not installed")

T5_LAYERS = {"q", "k", "v", "o", "wi", "wo"}
BERT_LAYERS = {"query", "key", "value", "dense"}
SMALL = Lora(rank=2, alpha=4, dropout=0.0)


def base(folder):
    return PretrainedEncoder(name=str(folder)).model


def last_names(model) -> set[str]:
    return {name.rpartition(".")[2] for name in adapted_layers(model)}


def adapted(folder, adapters: Lora = SMALL, name: str = "baseline", **train) -> Recipe:
    encoder = partial(PretrainedEncoder, name=str(folder), adapters=adapters)
    return replace(tiny(name, **{"learning_rate": 5e-2, **train}), encoder=encoder)


def test_all_linear_layers_get_adapters_keys_included(folders, tmp_path):
    for folder, wanted in (
        (folders["t5"], T5_LAYERS),
        (tiny_t5(tmp_path / "t5-1.1", "gated-gelu"), {*T5_LAYERS - {"wi"}, "wi_0", "wi_1"}),
        (folders["bert"], BERT_LAYERS),
    ):
        model = base(folder)
        put_in(model, SMALL)
        assert last_names(model) == wanted
        assert len(adapted_layers(model)) == 3 * (len(wanted) + 2 * ("dense" in wanted))  # 3 blocks; 3 dense in each


def test_targets_can_be_listed_and_must_be_there(folders):
    model = base(folders["t5"])
    put_in(model, replace(SMALL, targets=("q", "v", "o", "wi", "wo")))  # as Oi and Miwa 2025's list works out: no keys
    assert last_names(model) == T5_LAYERS - {"k"}
    with pytest.raises(ValueError, match=r"no linear layer is named '\.k'; there are k, o, q, v, wi, wo"):
        chosen_layers(base(folders["t5"]), ("q", ".k"))
    assert len(chosen_layers(base(folders["bert"]), ("attention.output.dense",))) == 3


def test_an_adapter_adds_the_scaled_product_of_its_matrices(folders):
    model = base(folders["bert"]).eval()
    plain = model.encoder.layer[0].attention.self.key
    weight, bias = plain.weight.detach().clone(), plain.bias.detach().clone()
    put_in(model, SMALL)
    layer = model.encoder.layer[0].attention.self.key
    down, up = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    assert down.shape == (2, 8)
    assert not up.any()  # nothing is changed before the first step
    torch.nn.init.normal_(up)
    x = torch.randn(5, 8)
    expected = x @ (weight + 4 / 2 * up @ down).T + bias
    torch.testing.assert_close(layer(x), expected)
    merge(model)
    assert not adapted_layers(model)
    torch.testing.assert_close(model.encoder.layer[0].attention.self.key(x), expected)


def test_only_adapters_and_what_lies_outside_the_transformer_learn(folders):
    learner = run_of(adapted(folders["bert"])).learner
    learns = {name for name, value in learner.named_parameters() if value.requires_grad}
    assert all(".lora_" in name for name in learns if name.startswith("model.encoder.model."))
    assert "model.encoder.shapes.weight" in learns
    assert any(name.startswith("model.scorer.head") for name in learns)
    rank_sums = 3 * 2 * (4 * (8 + 8) + 2 * (8 + 16))  # blocks, rank, layers of 8 to 8 and of 8 to 16 and back
    inside = [value.numel() for name, value in learner.named_parameters() if ".lora_" in name]
    assert sum(inside) == rank_sums
    every, learned = parameter_counts(learner)
    frozen = sum(value.numel() for value in PretrainedEncoder(name=str(folders["bert"])).model.parameters())
    assert every - learned == frozen


@pytest.mark.parametrize("kind", ["t5", "bert"])
def test_a_model_folder_is_a_plain_one_that_finds_the_same(folders, kind, tmp_path):
    recipe = adapted(folders[kind], epochs=2)
    data = dict(train=train_documents(8), dev=dev_documents(2), output=tmp_path, device="cpu")
    console = Console(file=io.StringIO(), width=200)
    model = wingspan.train(recipe, **data, console=console)
    weights = load_file(tmp_path / "model.safetensors")
    assert not any("lora" in name or "base_layer" in name for name in weights)
    before = {name: value.detach() for name, value in base(folders[kind]).named_parameters()}
    changed = 0
    for name, value in before.items():
        change = weights.get(f"model.encoder.model.{name}", value) - value
        changed += bool(change.any())
        assert not change.any() or torch.linalg.matrix_rank(change, atol=1e-5) <= 2
    assert changed == len(chosen_layers(base(folders[kind]), ()))
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".bin", ".pt", ".pkl")]
    loaded = wingspan.load(tmp_path, device="cpu")
    texts = dev_documents(4)
    expected = model.predict(texts, threshold=0.0)
    assert any(document.entities for document in expected)
    assert alike(loaded.predict(texts, threshold=0.0), expected, tolerance=0.0)
    assert not adapted_layers(loaded.learner)
    facts = describe_model(tmp_path)
    assert facts["encoder"]["adapters"] == {"record": "Lora", "rank": 2, "alpha": 4, "dropout": 0.0, "targets": []}
    layers = adapted_layers(load_phase(tmp_path, 1, device="cpu").learner).values()
    inserted = sum(2 * (layer.in_features + layer.out_features) for layer in layers)
    learned = facts["parameters"] - sum(value.numel() for value in before.values()) + inserted
    assert facts["trained_parameters"] == learned
    every = facts["parameters"] + inserted
    said = f"{every:,} parameters, {learned:,} of them trained ({100 * learned / every:.2f}%)."
    assert said in console.file.getvalue()
    unmerged = load_phase(tmp_path, 1, device="cpu")  # the last epoch's, as it was trained
    assert adapted_layers(unmerged.learner)
    if json.loads((tmp_path / "journal.jsonl").read_text().splitlines()[-2])["best"]:
        model.calibration = None  # that of the finished model came later
        assert alike(unmerged.predict(texts, threshold=0.0), model.predict(texts, threshold=0.0))


def test_without_a_folder_adapters_are_merged_too_and_saving_changes_nothing(folders, tmp_path):
    model = wingspan.train(adapted(folders["bert"]), train=train_documents(6), device="cpu")
    assert not adapted_layers(model.learner)
    model.save_pretrained(tmp_path / "one")
    text = "a drug in the cell"
    loaded = wingspan.load(tmp_path / "one", device="cpu")
    assert alike(loaded.predict(text, threshold=0.0), model.predict(text, threshold=0.0), tolerance=0.0)
    run = run_of(adapted(folders["bert"]))
    for name, value in run.learner.named_parameters():
        if ".lora_" in name:
            torch.nn.init.normal_(value)
    before = {name: value.clone() for name, value in run.learner.state_dict().items()}
    wingspan.Recognizer(run.recipe, run.labels, run.learner, device="cpu").save_pretrained(tmp_path / "two")
    after = run.learner.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_resumed_run_keeps_adapters_exactly(folders, tmp_path):
    def go(folder, **others):
        data = dict(train=train_documents(8), dev=dev_documents(2), output=folder, device="cpu")
        recipe = adapted(folders["t5"], Lora(rank=2, alpha=4, dropout=0.3), epochs=3, checkpoint_steps=1)
        return wingspan.train(recipe, **data, **others)

    def stop(progress):
        if progress.position.epoch == 2:
            raise KeyboardInterrupt

    go(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "two", watch=stop)
    go(tmp_path / "two", resume=True)
    for file in ("model.safetensors", "state/phase-1/learner.safetensors"):
        one, other = (load_file(tmp_path / name / file) for name in ("whole", "two"))
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
    assert any(".lora_B." in name for name in one)


def test_going_on_puts_new_adapters_beside_merged_weights(folders, tmp_path):
    recipe = adapted(folders["bert"])
    wingspan.train(recipe, train=train_documents(6), output=tmp_path / "first", device="cpu")
    go_on = replace(recipe, train=replace(recipe.train, learning_rate=0.0))
    again = wingspan.train(go_on, train=train_documents(6), start=tmp_path / "first", device="cpu")
    text = "a drug in the cell"
    first = wingspan.load(tmp_path / "first", device="cpu")
    assert alike(again.predict(text, threshold=0.0), first.predict(text, threshold=0.0))


def test_a_deep_tower_copies_its_blocks_before_adapters_go_in(folders):
    run = run_of(adapted(folders["bert"], name="deep_span/no-bilstm"))
    tower = run.learner.model.scorer.spans
    assert not adapted_layers(tower)
    assert all(value.requires_grad for value in tower.parameters())
    assert adapted_layers(run.learner.model.encoder)
    shared = override(run.recipe, "spans.share_weights", "true")
    with pytest.raises(ValueError, match="which adapters change"):
        run_of(shared)


def test_adapters_are_recorded_and_set_from_the_shell():
    recipe = replace(find("bundling/span"), encoder=partial(PretrainedEncoder, name="minilm", adapters=Lora(rank=3)))
    back = from_json(json.loads(json.dumps(as_json(recipe))))
    assert back.encoder.keywords["adapters"] == Lora(rank=3)
    switched_on = override(find("bundling/span"), "encoder.adapters.rank", "8")
    assert switched_on.encoder.keywords["adapters"] == Lora(rank=8)
    listed = override(switched_on, "encoder.adapters.targets", '["q", "v"]')
    assert listed.encoder.keywords["adapters"] == Lora(rank=8, targets=("q", "v"))
    assert override(listed, "encoder.adapters", "none").encoder.keywords["adapters"] is None
    with pytest.raises(ValueError, match="did you mean 'encoder.adapters.rank'"):
        override(listed, "encoder.adapters.ranks", "8")
    with pytest.raises(ValueError, match="rank is 0; give at least 1"):
        override(listed, "encoder.adapters.rank", "0")
    damaged = as_json(recipe)
    damaged["encoder"]["adapters"]["rank"] = "many"
    with pytest.raises(ValueError, match="rank of Lora is damaged"):
        from_json(damaged)


def test_a_missing_extra_is_one_sentence(folders, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ValueError, match=r"adapters need PEFT; install it with: pip install 'wingspan-ner\[peft\]'"):
        run_of(adapted(folders["bert"]))


@pytest.mark.parametrize("kind", ["t5", "bert"])
def test_gradient_checkpointing_changes_no_gradient_of_adapters(folders, kind):
    found = []
    for saving in (False, True):
        settings = dict(adapters=SMALL, dropout=0.0, gradient_checkpointing=saving)
        encoder = PretrainedEncoder(name=str(folders[kind]), **settings).train()
        torch.manual_seed(0)
        encoder.adapt(merged=False)
        encoder(tensors(encoder.tokenize([sentence("the drugs in genexys")]), "cpu")).top.square().sum().backward()
        found.append({name: value.grad for name, value in encoder.model.named_parameters() if ".lora_B" in name})
    assert all(value.any() for value in found[0].values())
    for name, value in found[0].items():
        torch.testing.assert_close(found[1][name], value)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_adapters_learn_in_float32_beside_a_smaller_base(folders, dtype):
    encoder = PretrainedEncoder(name=str(folders["t5"]), adapters=SMALL, dtype=dtype)
    encoder.adapt(merged=False)
    assert {value.dtype for value in encoder.model.parameters() if value.requires_grad} == {torch.float32}
    assert {value.dtype for value in encoder.model.parameters() if not value.requires_grad} == {getattr(torch, dtype)}
