# ruff: noqa: RUF001 - letters of other scripts are the subject here
"""How an answer says that nothing was found, in the language of the question."""

import re
from collections.abc import Mapping
from typing import Final

import regex

NOT_FOUND: Final[Mapping[str, str]] = {
    "en": "The files do not say.",
    "de": "Die Dateien sagen dazu nichts.",
    "fr": "Les fichiers ne le disent pas.",
    "es": "Los archivos no lo dicen.",
    "it": "I file non lo dicono.",
    "pt": "Os arquivos não dizem isso.",
    "nl": "De bestanden zeggen dit niet.",
    "ru": "В файлах этого нет.",
    "zh": "文件中没有相关内容。",
    "ja": "ファイルには記載がありません。",
    "ko": "파일에 해당 내용이 없습니다.",
}
_ASKED: Final[Mapping[str, str]] = {
    "german": "de", "deutsch": "de", "french": "fr", "français": "fr", "spanish": "es",
    "español": "es", "italian": "it", "italiano": "it", "portuguese": "pt", "português": "pt",
    "dutch": "nl", "nederlands": "nl", "russian": "ru", "chinese": "zh", "japanese": "ja",
    "korean": "ko", "english": "en",
}  # fmt: skip
_SCRIPTS: Final = (
    ("ja", regex.compile(r"[\p{Script=Hiragana}\p{Script=Katakana}]")),
    ("zh", regex.compile(r"\p{Script=Han}")),
    ("ko", regex.compile(r"\p{Script=Hangul}")),
    ("ru", regex.compile(r"\p{Script=Cyrillic}")),
)
_SMALL: Final = (
    ("en", "the is are of what which who how when where does did"),
    ("de", "der die das ist sind was wer wie wann wo welche wurde und"),
    ("fr", "le la les est sont quel quelle qui quand où comment des du"),
    ("es", "el los las es son qué quién cuándo dónde cómo cuál del por"),
    ("it", "il gli che è sono quale chi quando dove come della perché"),
    ("pt", "o os as é são qual quem quando onde como do da foi que"),
    ("nl", "de het een is zijn wat wie wanneer waar hoe welke van"),
)


def not_found(query: str, instructions: str | None) -> str:
    """The sentence, in the language the instructions name, else the question's, else English."""
    named = re.findall(r"\w+", (instructions or "").lower())
    asked = next((_ASKED[word] for word in named if word in _ASKED), None)
    return NOT_FOUND[asked or _language(query)]


def _language(query: str) -> str:
    script = next((name for name, letters in _SCRIPTS if letters.search(query)), None)
    if script is not None:
        return script
    words = set(re.findall(r"\w+", query.lower()[:2000]))
    return max(_SMALL, key=lambda known: len(words.intersection(known[1].split())))[0]
