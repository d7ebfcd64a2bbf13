"""The API to read in a browser: one page made of the OpenAPI description, and nothing else.

FastAPI's own page fetches scripts from a public network. A master often has none, and a page of
its address that runs somebody else's script could use the tokens of whoever reads it.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff;
       max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { font-size: 1.2rem; margin-top: 2.5rem; } h3 { font-size: 1rem; margin: 1.5rem 0 .2rem; }
code { font-size: 13.5px; } p { margin: .2rem 0; }
table { border-collapse: collapse; } td { padding: .1rem 1rem .1rem 0; vertical-align: top; }
.method { display: inline-block; width: 4rem; font-weight: 600; color: #00518a; }
"""
_REFERENCE = "#/components/schemas/"


def api_page(described: Mapping[str, Any]) -> str:
    """`described` is an OpenAPI document."""
    title = _text(described["info"]["title"])
    version = _text(described["info"]["version"])
    paths = "".join(
        _operation(path, method, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    )
    words = "".join(
        _word(name, schema) for name, schema in sorted(described["components"]["schemas"].items())
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>The HTTP API of {title}</title><style>{_STYLE}</style></head><body>"
        f"<h1>The HTTP API of {title} {version}</h1><p>{_text(described['info']['description'])}"
        '</p><p>For programs: <a href="openapi.json">openapi.json</a>.</p>'
        f"<h2>Calls</h2>{paths}<h2>Words</h2>{words}</body></html>\n"
    )


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> str:
    answer = next(reply for code, reply in operation["responses"].items() if code != "default")
    given = operation.get("parameters", ())
    rows = [
        *((each["name"], each["in"], _kind(each["schema"])) for each in given),
        *_content("body", operation.get("requestBody", {})),
        *_content("answer", answer),
    ]
    return (
        f"<h3><span class=method>{_text(method.upper())}</span><code>{_text(path)}</code></h3>"
        f"<p>{_text(operation.get('description') or operation['summary'])}</p>{_table(rows)}"
    )


def _content(what: str, holder: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (what, _text(media), _kind(each.get("schema", {})))
        for media, each in holder.get("content", {}).items()
    ]


def _word(name: str, schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    rows = (
        (field, _kind(of), "" if field in required else "optional")
        for field, of in schema.get("properties", {}).items()
    )
    said = _text(schema.get("description", ""))
    return f'<h3 id="{_text(name)}">{_text(name)}</h3><p>{said}</p>{_table(rows)}'


def _table(rows: Iterable[tuple[str, str, str]]) -> str:
    lines = "".join(
        f"<tr><td><code>{_text(name)}</code></td><td>{first}</td><td>{second}</td></tr>"
        for name, first, second in rows
    )
    return f"<table>{lines}</table>"


def _kind(schema: Mapping[str, Any]) -> str:
    """A schema in words, with links to those that have a name."""
    if "$ref" in schema:
        name = _text(schema["$ref"].removeprefix(_REFERENCE))
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return _text(schema.get("type", "anything"))


def _text(value: object) -> str:
    return html.escape(str(value))
