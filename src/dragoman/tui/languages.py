"""What the lexer knows of each language: its keywords, comments and strings (`tui/highlight.py`)."""

from __future__ import annotations

from typing import NamedTuple


class Language(NamedTuple):
    """What the lexer has to know of one language."""

    keywords: str
    comment: str = "//"
    """What starts a comment to the end of the line: signs joined by blanks."""
    blocks: tuple[tuple[str, str, str], ...] = (("/*", "*/", "comment"),)
    """What goes over lines: opening, closing, style."""
    quotes: str = "\"'"
    ignores_case: bool = False


LANGUAGES = {
    "python": Language(
        "and as assert async await break case class continue def del elif else except finally for from global if import in is "
        "lambda match nonlocal not or pass raise return try while with yield",
        comment="#",
        blocks=(('"""', '"""', "string"), ("'''", "'''", "string")),
    ),
    "javascript": Language(
        "async await break case catch class const continue default delete do else export extends finally for from function get if "
        "import in instanceof let new of return set static super switch throw try typeof var void while with yield abstract as "
        "declare enum implements interface keyof namespace private protected public readonly type any boolean number string "
        "unknown never",
        blocks=(("/*", "*/", "comment"), ("`", "`", "string")),
    ),
    "shell": Language(
        "case do done elif else esac exit export fi for function if in local readonly return select set shift source then trap "
        "unset until while cd echo sudo",
        comment="#",
        blocks=(),
    ),
    "json": Language(
        "",
        quotes='"',
    ),
    "config": Language(
        "",
        comment="#",
        blocks=(),
    ),
    "c": Language(
        "break case const continue default do else enum extern for goto if inline return sizeof static struct switch typedef "
        "union void while bool char double float int long short signed unsigned auto abstract catch class extends final finally "
        "implements import interface new package private protected public super this throw throws try delete explicit friend "
        "namespace operator template typename using virtual override constexpr nullptr noexcept #include #define #if #ifdef "
        "#ifndef #endif #else",
    ),
    "java": Language(
        "break case const continue default do else enum extern for goto if inline return sizeof static struct switch typedef "
        "union void while abstract catch class extends final finally implements import interface new package private protected "
        "public super this throw throws try boolean byte double float int long short char assert instanceof native synchronized "
        "transient volatile var record fun val when object data open override suspend companion by init internal sealed using "
        "foreach namespace string get set async await",
    ),
    "go": Language(
        "break case chan const continue default defer else fallthrough for func go goto if import interface map package range "
        "return select struct switch type var",
        blocks=(("/*", "*/", "comment"), ("`", "`", "string")),
    ),
    "rust": Language(
        "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref "
        "return static struct super trait type unsafe use where while",
        quotes='"',
    ),
    "swift": Language(
        "as associatedtype break case catch class continue default defer deinit do else enum extension fallthrough for func guard "
        "if import in init inout is let protocol return static struct subscript super switch throw throws try typealias var where "
        "while",
    ),
    "ruby": Language(
        "alias and begin break case class def do else elsif end ensure for if in module next not or redo rescue retry return "
        "super then undef unless until when while yield require attr_accessor",
        comment="#",
        blocks=(),
    ),
    "php": Language(
        "break case const continue default do else enum extern for goto if inline return sizeof static struct switch typedef "
        "union void while abstract catch class extends final finally implements import interface new package private protected "
        "public super this throw throws try echo foreach function use namespace as elseif endif require include var fn match "
        "array",
        comment="// #",
    ),
    "lua": Language(
        "and break do else elseif end for function goto if in local not or repeat return then until while",
        comment="--",
        blocks=(("--[[", "]]", "comment"),),
    ),
    "sql": Language(
        "add all alter and as asc begin between by case check column commit constraint create cross database default delete desc "
        "distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit "
        "not null on or order outer primary references returning right rollback select set table then transaction union unique "
        "update using values view when where with",
        comment="--",
        quotes="'\"",
        ignores_case=True,
    ),
    "css": Language(
        "@media @import @keyframes @font-face important",
        comment="",
    ),
    "html": Language(
        "",
        comment="",
        blocks=(("<!--", "-->", "comment"),),
    ),
    "docker": Language(
        "from as run cmd label expose env add copy entrypoint volume user workdir arg onbuild stopsignal healthcheck shell",
        comment="#",
        blocks=(),
        ignores_case=True,
    ),
}
NAMES = {
    "py": "python", "python3": "python", "pyi": "python", "starlark": "python", "js": "javascript", "jsx": "javascript",
    "ts": "javascript", "tsx": "javascript", "mjs": "javascript", "cjs": "javascript", "typescript": "javascript",
    "node": "javascript", "vue": "javascript", "sh": "shell", "bash": "shell", "zsh": "shell", "fish": "shell", "console": "shell",
    "shell-session": "shell", "makefile": "shell", "make": "shell", "mk": "shell", "jsonc": "json", "json5": "json", "jsonl": "json",
    "ndjson": "json", "yaml": "config", "yml": "config", "toml": "config", "ini": "config", "cfg": "config", "conf": "config",
    "properties": "config", "env": "config", "h": "c", "cpp": "c", "cc": "c", "cxx": "c", "c++": "c", "hpp": "c", "objc": "c",
    "kotlin": "java", "kt": "java", "scala": "java", "cs": "java", "csharp": "java", "c#": "java", "dart": "java", "groovy": "java",
    "golang": "go", "rs": "rust", "rb": "ruby", "scss": "css", "less": "css", "xml": "html", "svg": "html", "htm": "html",
    "dockerfile": "docker", "containerfile": "docker", "psql": "sql", "mysql": "sql", "sqlite": "sql", "postgresql": "sql",
}  # fmt: skip
"""Other names of them, and the endings of files."""
LITERALS = frozenset(("True", "False", "None", "true", "false", "null", "nil", "undefined", "NaN", "self", "this", "YES", "NO"))
DEFINING = frozenset(
    ("def", "class", "fn", "func", "function", "struct", "enum", "trait", "interface", "type", "impl", "module", "namespace", "fun")
)
"""After these comes the name of what is defined."""
