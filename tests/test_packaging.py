"""What is published: the wheel, the source archive, the site, the notebook, and the files that describe them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from boxes import PLACE

import wingspan
from wingspan.box import FOLDER, NAME, PACKAGE, installed_folder

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def sources() -> set[str]:
    """Every file of the package that is no by-product of running it."""
    folder = ROOT / "src" / "wingspan"
    return {
        f"wingspan/{path.relative_to(folder).as_posix()}"
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_wheel_and_source_archive_hold_the_whole_package(tmp_path):
    pytest.importorskip("build")
    pytest.importorskip("setuptools")
    copy = tmp_path / "copy"
    names = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff")
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in names:
        shutil.copy(ROOT / name, copy / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path / "dist", copy]
    subprocess.run(command, check=True, capture_output=True)
    stem = f"wingspan_ner-{wingspan.__version__}"
    with zipfile.ZipFile(tmp_path / "dist" / f"{stem}-py3-none-any.whl") as wheel:
        assert sources() <= set(wheel.namelist())
        facts = wheel.read(f"{stem}.dist-info/METADATA").decode()
        assert "wingspan = wingspan.cli:main" in wheel.read(f"{stem}.dist-info/entry_points.txt").decode()
    assert f"Name: wingspan-ner\nVersion: {wingspan.__version__}\n" in facts
    assert "Classifier: Typing :: Typed" in facts
    with tarfile.open(tmp_path / "dist" / f"{stem}.tar.gz") as archive:
        assert {f"{stem}/src/{name}" for name in sources()} <= set(archive.getnames())


def test_the_model_is_a_package_of_data_that_needs_nothing(tmp_path):
    pytest.importorskip("build")
    pytest.importorskip("setuptools")
    copy = tmp_path / "copy"
    shutil.copytree(PLACE, copy, ignore=shutil.ignore_patterns(FOLDER, "*.egg-info", "build", "__pycache__"))
    shutil.copytree(ROOT / "tests" / "frozen" / "models" / "baseline-pretrained", copy / PACKAGE / FOLDER)
    files = {path.relative_to(copy).as_posix() for path in (copy / PACKAGE).rglob("*") if path.is_file()}
    assert f"{PACKAGE}/{FOLDER}/encoder/config.json" in files  # folders inside of it, too
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path / "dist", copy]
    subprocess.run(command, check=True, capture_output=True)
    stem = f"{PACKAGE}-{tomllib.loads((PLACE / 'pyproject.toml').read_text(encoding='utf-8'))['project']['version']}"
    with zipfile.ZipFile(tmp_path / "dist" / f"{stem}-py3-none-any.whl") as wheel:
        assert {name for name in wheel.namelist() if ".dist-info/" not in name} == files
        facts = wheel.read(f"{stem}.dist-info/METADATA").decode()
        assert not [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert f"\nName: {NAME}\n" in facts
    assert "Requires-Dist" not in facts
    with tarfile.open(tmp_path / "dist" / f"{stem}.tar.gz") as archive:
        assert {f"{stem}/{name}" for name in files} <= set(archive.getnames())


def test_one_version_is_everywhere():
    assert PROJECT["dynamic"] == ["version"]
    assert f"\nversion: {wingspan.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {wingspan.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    pytest.importorskip("furo")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "docs", tmp_path]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"README"} | {"index"}
    assert {f"{page}.html" for page in pages} <= {path.name for path in tmp_path.iterdir()}
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{page}.html"' in index for page in pages - {"index"}), "every page is in the contents"


def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    notebook = nbformat.read(ROOT / "examples" / "tutorial.ipynb", as_version=4)
    if installed_folder() is None:  # nothing for the first cell to show
        notebook.cells[1].source = "import wingspan"
    client.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path / "examples"}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in shown if output.output_type == "error"]
    assert not [text for output in shown if "Warning" in (text := output.get("text", ""))]
    pages = [page for output in shown if "ws-text" in (page := output.get("data", {}).get("text/html", ""))]
    assert len(pages) == 2 + (installed_folder() is not None), "so many documents show themselves"
    assert (tmp_path / "examples" / "runs" / "tutorial" / "model.safetensors").is_file()
