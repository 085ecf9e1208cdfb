"""Renders published chat templates with `transformers`, for the test `chat::corpus` of this crate.

    pip download --no-deps --no-binary :all: llama-cpp-python==0.3.36
    pip download --no-deps trl==1.16.0 axolotl==0.19.0
    pip install transformers==5.24.0 jinja2==3.1.6
    python make.py FOLDER        the folder that has the archives

Writes `corpus.json.gz` beside this file: the templates of `sources.json`, and for each conversation of
`conversations.json` the text, or the error.
"""

import datetime
import fnmatch
import gzip
import json
import pathlib
import sys
import tarfile
import zipfile

import jinja2
from transformers.utils import chat_template_utils

HERE = pathlib.Path(__file__).parent


class Then(datetime.datetime):
    """A clock that stands, so that dates in templates stay as they are."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 7, 26, 13, 5, 9)


def read_json(name):
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def files(archive):
    """Pairs of path and text of all templates in an archive."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if name.endswith(".jinja"):
                    yield name, wheel.read(name).decode()
    else:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.name.endswith(".jinja"):
                    yield member.name, tar.extractfile(member).read().decode()


def templates(folder):
    """Pairs of name and source, each source once."""
    seen = set()
    for source in read_json("sources.json"):
        found = {}
        for path, text in files(folder / source["archive"]):
            path = pathlib.PurePosixPath(path)
            if str(path.parent).endswith(source["folder"]):
                found[path.stem] = text
        for pattern in source["templates"]:
            names = sorted(fnmatch.filter(found, pattern), key=str.lower)
            if not names:
                sys.exit(f"{source['archive']} has no template {pattern}")
            for name in names:
                if found[name] not in seen:
                    seen.add(found[name])
                    yield f"{source['package'].split()[0]}/{name}", found[name]


def rendered(template, conversation, tools):
    """The text, or what was raised: the template's own words, or the kind of Python's error."""
    try:
        texts, _ = chat_template_utils.render_jinja_template(
            [conversation["messages"]],
            tools=tools[: conversation["tools"]] if "tools" in conversation else None,
            chat_template=template,
            add_generation_prompt=conversation.get("add_generation_prompt", True),
            bos_token="<bos>",
            eos_token="<eos>",
            **conversation.get("variables", {}),
        )
        return {"text": texts[0]}
    except jinja2.exceptions.TemplateError as error:
        own = type(error) is jinja2.exceptions.TemplateError
        return {"raised" if own else "error": str(error)}
    except (TypeError, ValueError, AttributeError, KeyError, RecursionError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    chat_template_utils.datetime = Then
    tools = read_json("tools.json")
    conversations = read_json("conversations.json")
    corpus = {
        name: {"source": source, "expected": [rendered(source, one, tools) for one in conversations]}
        for name, source in templates(pathlib.Path(sys.argv[1]))
    }
    data = json.dumps(corpus, ensure_ascii=False, indent=0).encode()
    (HERE / "corpus.json.gz").write_bytes(gzip.compress(data, mtime=0))
    print(f"{len(corpus)} templates, {len(conversations)} conversations")


main()
