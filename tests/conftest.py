import os

# tests run beside each other on few cores; one thread each is quicker, and sums come out the same every time
os.environ["OMP_NUM_THREADS"] = "1"  # read on import, here and in the processes that tests start

import hypothesis  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)

hypothesis.settings.register_profile("shared-machine", deadline=None)
hypothesis.settings.load_profile("shared-machine")


SLOW = {
    *("test_adapters", "test_analyze", "test_compress_recipe", "test_deep_recipe", "test_discontinuous_recipe"),
    *("test_experiment", "test_frozen_trainings", "test_fuzz", "test_other_scorers", "test_perturbations"),
    *("test_pretrained", "test_quantization", "test_recipes", "test_round_trip", "test_static_pieces", "test_tune"),
    *("test_calibrated_model", "test_cli_models", "test_hashed", "test_hostile_folders", "test_model_folder"),
    *("test_packaging", "test_first_hours", "test_several_corpora", "test_typed_spans", "test_vector_cache"),
    *("test_windows", "test_loopback", "test_page"),
}
"""Modules that take half of the time of all others; `pytest -m "not slow"` leaves them out."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests that read real corpora or encoders are slow, and so are the modules that cost most."""
    for item in items:
        real = any("WINGSPAN_" in mark.kwargs.get("reason", "") for mark in item.iter_markers("skipif"))
        page = item.name.startswith("test_a_page_does_what_it_says")
        if real or page or item.path.stem in SLOW:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Tiny pretrained encoders, one of each kind; do not change what is in them."""
    from tiny_models import tiny_bart, tiny_bert, tiny_roberta, tiny_t5

    root = tmp_path_factory.mktemp("encoders")
    makers = {"bert": tiny_bert, "roberta": tiny_roberta, "t5": tiny_t5, "bart": tiny_bart}
    return {name: make(root / name) for name, make in makers.items()}


@pytest.fixture(scope="session")
def saved_bert(tmp_path_factory, folders):
    """The folder of a model with a tiny BERT; do not change what is in it."""
    from functools import partial

    from trainings import untrained
    from wingspan.encoders.pretrained import PretrainedEncoder

    folder = tmp_path_factory.mktemp("saved") / "model"
    untrained("bundling/bl-span", encoder=partial(PretrainedEncoder, name=str(folders["bert"]))).save_pretrained(folder)
    return folder


@pytest.fixture(params=["bert", "roberta", "t5", "bart"])
def folder(request, folders):
    return folders[request.param]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Corpora and a trained model, for the shell."""
    from shells import QUICK

    import wingspan
    from trainings import save_corpora

    folder = tmp_path_factory.mktemp("shell")
    train, dev = save_corpora(folder)
    settings = dict(item.split("=") for item in QUICK) | {"train.epochs": "3", "train.batch_size": "4"}
    wingspan.train("baseline", train=train, dev=dev, output=folder / "model", settings=settings, device="cpu")
    return folder


@pytest.fixture
def shell(monkeypatch, capsys, prepared):
    """Runs commands: `shell("info", shell.model)`."""
    from shells import Shell

    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # says at once that the hub is out of reach
    return Shell(monkeypatch, capsys, prepared)
