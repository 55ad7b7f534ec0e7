import hypothesis
import pytest
import torch

# tests run beside each other on few cores; one thread each is quicker, and sums come out the same every time
torch.set_num_threads(1)

hypothesis.settings.register_profile("shared-machine", deadline=None)
hypothesis.settings.load_profile("shared-machine")


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Tiny pretrained encoders, one of each kind; do not change what is in them."""
    from tiny_models import tiny_bert, tiny_roberta

    root = tmp_path_factory.mktemp("encoders")
    return {"bert": tiny_bert(root / "bert"), "roberta": tiny_roberta(root / "roberta")}


@pytest.fixture(params=["bert", "roberta"])
def folder(request, folders):
    return folders[request.param]
