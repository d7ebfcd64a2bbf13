"""The reference of the job file, written from its schema: what is documented is what is read.

`python -m eva.inputs.job_file_reference DOCS_FOLDER` writes `job-file.md` and
`job-file.schema.json`; a test fails where they are not up to date.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from eva.inputs.job_file import LIMITS, json_schema

_SECTIONS = (
    ("JobFile", "Fields of a job"),
    ("JobResources", "`resources`"),
    ("FamilyResources", "`resources.per_family.FAMILY`"),
    ("Throughput", "`throughput`"),
    ("Progress", "`progress`"),
    ("Checkpoint", "`checkpoint`"),
)
_PLAIN_WORDS = {
    "object": "mapping",
    "array or object": "list or mapping",
    "string or array": "script or list of words",
}
_INTRODUCTION = """\
# The job file

A job is a YAML file, in the words that SkyPilot uses. `eva submit JOB.yaml` checks it, shows where
the job would go and what that adds to the bill, and hands it in. Everything that is wrong is listed
at once, by line. The folder of the file is the job's: paths are relative to it and never leave it.

```yaml
{example}```

Editors complete and check job files that begin with
`# yaml-language-server: $schema=./job-file.schema.json` ([the schema](job-file.schema.json)).
This page is generated from that schema.

Files may have up to {characters:,} characters, {depth} levels and {aliases} aliases; merge keys
(`<<`), tags and further documents are refused.

A task finds in its environment: `EVA_JOB`, `EVA_TASK`, `EVA_EPOCH`, `EVA_JOB_DIR`,
`EVA_CHECKPOINT_DIR`, `EVA_RESTORE_DIR`, `EVA_RANK`, `EVA_WORLD_SIZE`, `EVA_MASTER_ADDR`,
`EVA_MASTER_PORT`, `EVA_NODE_IPS`; for PyTorch and others also `RANK`, `WORLD_SIZE`, `MASTER_ADDR`
and `MASTER_PORT`.
"""
EXAMPLE = """\
name: train
num_nodes: 2
workdir: .
envs: {EPOCHS: 90}
setup: pip install -r requirements.txt
run: python train.py --epochs "$EPOCHS"
resources:
  gpus: 1
  cpus: 4
  memory: 24GB
  per_family:
    c7i: {cpus: 6}
retries: 2
max_duration: 12h
"""


def markdown() -> str:
    schema = json_schema()
    models = {"JobFile": schema, **schema["$defs"]}
    text = _INTRODUCTION.format(
        example=EXAMPLE, characters=LIMITS.characters, depth=LIMITS.depth, aliases=LIMITS.aliases
    )
    parts = [text]
    for name, title in _SECTIONS:
        parts.append(_section(title, models[name]))
    return "\n".join(parts)


def _section(title: str, model: dict[str, Any]) -> str:
    lines = [f"## {title}", "", model.get("description", ""), ""]
    lines += ["| field | kind | default | |", "|---|---|---|---|"]
    required = model.get("required", [])
    for name, field in model["properties"].items():
        default = "**required**" if name in required else _default(field)
        lines.append(f"| `{name}` | {_kind(field)} | {default} | {field.get('description', '')} |")
    return "\n".join([*lines, ""])


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    if default in (None, {}, []) or isinstance(default, dict):
        return ""
    return f"`{default}`"


def _kind(field: dict[str, Any]) -> str:
    """The kind of a value in words; alternatives are joined, null is left out."""
    if "anyOf" in field:
        kinds = [_kind(each) for each in field["anyOf"] if each.get("type") != "null"]
        return " or ".join(kinds)
    if "$ref" in field:
        return "a mapping, see below"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "format" in field:
        return str(field["format"])
    kind = field.get("type", "value")
    text = " or ".join(kind) if isinstance(kind, list) else str(kind)
    return _PLAIN_WORDS.get(text, text) + _bounds(field)


def _bounds(field: dict[str, Any]) -> str:
    words = []
    if "minimum" in field:
        words.append(f"from {field['minimum']}")
    if "exclusiveMinimum" in field:
        words.append(f"more than {field['exclusiveMinimum']}")
    if "maximum" in field:
        words.append(f"to {field['maximum']}")
    if "maxLength" in field:
        words.append(f"up to {field['maxLength']} characters")
    return f" ({', '.join(words)})" if words else ""


def schema_text() -> str:
    return json.dumps(json_schema(), indent=2) + "\n"


def main() -> None:
    folder = Path(sys.argv[1])
    (folder / "job-file.md").write_text(markdown())
    (folder / "job-file.schema.json").write_text(schema_text())


if __name__ == "__main__":
    main()
