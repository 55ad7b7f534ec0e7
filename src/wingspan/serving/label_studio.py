"""Label Studio's protocol of machine learning backends: tasks in, predictions out.

Label Studio sends its labeling interface as XML with every request, so nothing is kept between them.
See: https://labelstud.io/guide/ml_create
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import ParseError, fromstring

from wingspan.corpora.formats.annotators import LABEL_STUDIO, label_studio_prediction
from wingspan.corpora.formats.conversion_loss import fit, loss_lines
from wingspan.serving import Refusal
from wingspan.text import Document

HOW = 'it needs <Labels name="label" toName="text"> and <Text name="text" value="$text"/>'


class Interface(NamedTuple):
    """Where predictions go in a labeling interface."""

    control: str = "label"  # the name of the <Labels> tag
    text: str = "text"  # the name of the <Text> tag
    key: str = "text"  # of a task's data
    labels: tuple[str, ...] = ()  # none: all are taken


def interface_of(config: str) -> Interface:
    """The interface of Label Studio's XML. One that declares entities is refused: there is no use for them."""
    if not config.strip():
        return Interface()
    if "<!" in config.replace("<!--", ""):
        raise Refusal(422, "the labeling interface has a declaration (<!...>); write it without one")
    try:
        root = fromstring(config)
    except (ParseError, ValueError):
        raise Refusal(422, "the labeling interface is not valid XML; copy it from Label Studio's settings") from None
    texts = {tag.get("name", ""): tag.get("value", "") for tag in root.iter("Text")}
    for control in root.iter("Labels"):
        text = control.get("toName", "")
        if text in texts:
            labels = tuple(label.get("value", "") for label in control.iter("Label"))
            return Interface(control.get("name", ""), text, texts[text].removeprefix("$"), labels)
    raise Refusal(422, f"the labeling interface has no <Labels> of a <Text>; {HOW}")


def checked(interface: Interface, found: Sequence[str]) -> Interface:
    """The interface, if it has a label that the model finds."""
    if interface.labels and not matches(interface, found):
        ours = ", ".join(found[:20])
        raise Refusal(422, f"the labeling interface has no label that this model finds; add some of {ours}")
    return interface


def matches(interface: Interface, found: Sequence[str]) -> dict[str, str]:
    """The labels of the interface by those of the model; upper and lower case are the same."""
    names = {label.casefold(): label for label in reversed(interface.labels)}
    return {label: names[label.casefold()] for label in found if label.casefold() in names}


def text_of(task: Any, interface: Interface) -> str:
    """The text of a task."""
    data = task.get("data") if isinstance(task, Mapping) else None
    if not isinstance(data, Mapping):
        raise Refusal(422, "a task has no `data`; send tasks as Label Studio does")
    text = data.get(interface.key)
    if not isinstance(text, str):
        strings = [value for value in data.values() if isinstance(value, str)]
        if interface.labels or len(strings) != 1:
            raise Refusal(422, f"a task has no text under {interface.key!r}, where the interface says it is; {HOW}")
        text = strings[0]
    return text


def prediction(document: Document, interface: Interface, version: str) -> dict[str, Any]:
    """The prediction of a task. What the interface or Label Studio cannot hold is left out and said in `notes`."""
    known = matches(interface, [entity.label for entity in document.entities])
    kept, left_out = [], Counter[str]()
    for entity in document.entities:
        if interface.labels and entity.label not in known:
            left_out[entity.label] += 1
        else:
            label = known.get(entity.label, entity.label)
            kept.append(type(entity)(label, entity.spans, entity.score))
    fitted, lost = fit(Document(document.id, document.text, tuple(kept)), LABEL_STUDIO)
    notes = loss_lines(lost, "label-studio")
    notes += [f"the interface has no label {label!r}: {count} left out" for label, count in left_out.items()]
    answer = label_studio_prediction(fitted, version, interface.control, interface.text)
    return {**answer, **({"notes": notes} if notes else {})}
