"""Numbers written as words, in English, Spanish, Portuguese, French, Italian, German and Dutch."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import regex

_WORDS = {
    "en": """
    0 zero nought 1 one 2 two 3 three 4 four 5 five 6 six 7 seven 8 eight 9 nine 10 ten 11 eleven
    12 twelve dozen 13 thirteen 14 fourteen 15 fifteen 16 sixteen 17 seventeen 18 eighteen 19
    nineteen 20 twenty 30 thirty 40 forty 50 fifty 60 sixty 70 seventy 80 eighty 90 ninety 100
    hundred 1e3 thousand 1e6 million 1e9 billion 1e12 trillion
    """,
    "es": """
    0 cero 1 uno un una 2 dos 3 tres 4 cuatro 5 cinco 6 seis 7 siete 8 ocho 9 nueve 10 diez 11
    once 12 doce 13 trece 14 catorce 15 quince 16 dieciseis 17 diecisiete 18 dieciocho 19
    diecinueve 20 veinte veinti 30 treinta 40 cuarenta 50 cincuenta 60 sesenta 70 setenta 80
    ochenta 90 noventa 100 cien ciento 200 doscientos doscientas 300 trescientos trescientas 400
    cuatrocientos cuatrocientas 500 quinientos quinientas 600 seiscientos seiscientas 700
    setecientos setecientas 800 ochocientos ochocientas 900 novecientos novecientas 1e3 mil 1e6
    millon millones 1e12 billon billones
    """,
    "pt": """
    0 zero 1 um uma 2 dois duas 3 tres 4 quatro 5 cinco 6 seis 7 sete 8 oito 9 nove 10 dez 11 onze
    12 doze 13 treze 14 catorze quatorze 15 quinze 16 dezesseis dezasseis 17 dezessete dezassete
    18 dezoito 19 dezenove dezanove 20 vinte 30 trinta 40 quarenta 50 cinquenta 60 sessenta 70
    setenta 80 oitenta 90 noventa 100 cem cento 200 duzentos duzentas 300 trezentos trezentas 400
    quatrocentos quatrocentas 500 quinhentos quinhentas 600 seiscentos seiscentas 700 setecentos
    setecentas 800 oitocentos oitocentas 900 novecentos novecentas 1e3 mil 1e6 milhao milhoes 1e9
    bilhao bilhoes
    """,
    "fr": """
    0 zero 1 un une 2 deux 3 trois 4 quatre 5 cinq 6 six 7 sept 8 huit 9 neuf 10 dix 11 onze 12
    douze 13 treize 14 quatorze 15 quinze 16 seize 20 vingt vingts 30 trente 40 quarante 50
    cinquante 60 soixante 70 septante 80 huitante quatrevingt quatrevingts octante 90 nonante 100
    cent cents 1e3 mille 1e6 million millions 1e9 milliard milliards
    """,
    "it": """
    0 zero 1 uno un una 2 due 3 tre 4 quattro 5 cinque 6 sei 7 sette 8 otto 9 nove 10 dieci 11
    undici 12 dodici 13 tredici 14 quattordici 15 quindici 16 sedici 17 diciassette 18 diciotto 19
    diciannove 20 venti vent 30 trenta trent 40 quaranta quarant 50 cinquanta cinquant 60 sessanta
    sessant 70 settanta settant 80 ottanta ottant 90 novanta novant 100 cento cent 1e3 mille mila
    1e6 milione milioni 1e9 miliardo miliardi
    """,
    "de": """
    0 null 1 eins ein eine einen einem einer 2 zwei zwo 3 drei 4 vier 5 funf fuenf 6 sechs 7
    sieben 8 acht 9 neun 10 zehn 11 elf 12 zwolf zwoelf 13 dreizehn 14 vierzehn 15 funfzehn
    fuenfzehn 16 sechzehn 17 siebzehn 18 achtzehn 19 neunzehn 20 zwanzig 30 dreissig 40 vierzig 50
    funfzig fuenfzig 60 sechzig 70 siebzig 80 achtzig 90 neunzig 100 hundert 1e3 tausend 1e6
    million millionen 1e9 milliarde milliarden
    """,
    "nl": """
    0 nul 1 een 2 twee 3 drie 4 vier 5 vijf 6 zes 7 zeven 8 acht 9 negen 10 tien 11 elf 12 twaalf
    13 dertien 14 veertien 15 vijftien 16 zestien 17 zeventien 18 achttien 19 negentien 20 twintig
    30 dertig 40 veertig 50 vijftig 60 zestig 70 zeventig 80 tachtig 90 negentig 100 honderd 1e3
    duizend 1e6 miljoen 1e9 miljard
    """,
}
"""Each number before the words for it, without accents."""
_AND = {"en": "and", "es": "y", "pt": "e", "fr": "et", "it": "e", "de": "und", "nl": "en"}
_COMMON = {
    "en": "the of and to in is was were for with that on by from are at this",
    "es": "el la los las de del que y en con por para fue son se una un",
    "pt": "o os da do das de em com para foi que e uma um no na",
    "fr": "le la les des de et est dans pour avec du sur une un",
    "it": "il la gli di che e per con della del nel sono una un",
    "de": "der die das und ist mit von den im wurde wurden bei eine ein",
    "nl": "de het van een met op zijn werd en bij",
}
_AMBIGUOUS = frozenset(
    """
    due once sei elf cent cents mil un une una uno um uma ein eine einen einem einer een sept dix
    tien dos null vent trent doze seize venti diez mila tres tre cem eins mille
    """.split()  # noqa: SIM905 - a table of words reads best as one
)
"""Number words that are other words, or names, elsewhere; read only in text of their language."""

_WORD = regex.compile(r"\p{L}[\p{L}\p{M}]*")
_LONGEST = 20_000
_FOUR_TWENTIES = regex.compile(r"\bquatre[ -]vingt")
_AFTER_DIGIT = regex.compile(r"\d[\s-]?$")
_PERCENT = regex.compile(r"\s(?:per\s?cent|prozent|por\s?ciento|por\s?cento|pour\s?cent|procent)\b")
_NEAR = regex.compile(r"[\s\u00ad-]{1,3}")
_FRACTIONS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "eighth": 8}
_FRACTIONS |= {"tenth": 10}
_FRACTION = regex.compile(rf"(?:(\p{{L}}+)[\s-]+)?\b({'|'.join(_FRACTIONS)}|halve)s?\b")


class _Said(NamedTuple):
    value: float
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Language:
    values: Mapping[str, float]
    whole: "regex.Pattern[str]"
    connector: str
    common: frozenset[str]


def spelled_numbers(text: str) -> set[float]:
    """The numbers that ``text`` writes as words."""
    plain = _plain(text)
    said = [*_fractions(plain)]
    words = [_Said(0, *found.span()) for found in _WORD.finditer(plain)]
    spoken = _spoken({plain[word.start : word.end] for word in words})
    for name in _WORDS:
        said += _counted(_language(name), words, plain, spoken=name in spoken)
    return set(_outermost(said))


def by_word(table: str) -> dict[str, float]:
    """A table that has each number before the words for it, by word."""
    values: dict[str, float] = {}
    value = 0.0
    for token in table.split():
        if token[0].isdigit():
            value = float(token)
        else:
            values[token] = value
    return values


def _outermost(said: Sequence[_Said]) -> Iterator[float]:
    """The values that are no part of the words of another: not the five of thirty-five."""
    widest = (-1, -1)
    for value, start, end in sorted(said, key=lambda one: (one.start, -one.end)):
        if end > widest[1] or (start, end) == widest:
            widest = (start, end)
            yield value


@cache
def _language(name: str) -> _Language:
    values = by_word(_WORDS[name])
    parts = "|".join(sorted([*values, _AND[name]], key=len, reverse=True))
    return _Language(
        values=values,
        whole=regex.compile(rf"(?P<part>{parts})+?"),
        connector=_AND[name],
        common=frozenset(_COMMON[name].split()),
    )


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text[:_LONGEST].replace("ß", "ss")).lower()
    bare = "".join(char for char in decomposed if not unicodedata.combining(char))
    return _FOUR_TWENTIES.sub("quatrevingt", bare)


def _spoken(words: set[str]) -> set[str]:
    """The languages, beside English, that the words speak for more than for English."""
    english = len(words & _language("en").common)
    scores = {name: len(words & _language(name).common) for name in _WORDS}
    return {name for name, score in scores.items() if score > english}


def _counted(
    language: _Language, words: Sequence[_Said], text: str, *, spoken: bool
) -> Iterator[_Said]:
    """The numbers that neighbouring words make together."""
    run: list[_Said] = []
    last = 0
    for _, start, end in words:
        word = text[start:end]
        near = bool(run) and _NEAR.fullmatch(text, last, start) is not None
        unclear = word in _AMBIGUOUS and not spoken and not near
        values = (
            []
            if unclear or (not run and _AFTER_DIGIT.search(text, max(0, start - 3), start))
            else _parts(language, word)
        )
        if run and not (near and (values or word == language.connector)):
            yield from _sums(run, text)
            run = []
        run += [_Said(value, start, end) for value in values]
        last = end
    yield from _sums(run, text)


def _parts(language: _Language, word: str) -> list[float]:
    found = language.whole.fullmatch(word)
    if found is None:
        return []
    parts = [part for part in found.captures("part") if part in language.values]
    values = [language.values[part] for part in parts]
    # "fünfundzwanzig", "vijfentwintig": the unit comes first
    for at, value in enumerate(values[1:], 1):
        if values[at - 1] < 10 and 20 <= value < 100:
            values[at - 1 : at + 1] = [value, values[at - 1]]
    return values


def _sums(values: Sequence[_Said], text: str) -> Iterator[_Said]:
    """The numbers that the values of neighbouring words add up to, percentages also as shares."""
    total = group = 0.0
    for at, (value, _, end) in enumerate(values):
        if at == 0 or not _continues(values[at - 1].value, group, value):
            total, group, start = 0.0, 0.0, values[at].start
        if value < 1000 and value != 100:
            group += value
        elif value == 100:
            group = max(group, 1) * 100
        elif value > total > 0:
            total, group = (total + group) * value, 0.0
        else:
            total, group = total + max(group, 1) * value, 0.0
        if at + 1 == len(values) or not _continues(value, group, values[at + 1].value):
            yield _Said(total + group, start, end)
            if at + 1 == len(values) and _PERCENT.match(text, end):
                yield _Said((total + group) / 100, start, end)


def _continues(previous: float, group: float, value: float) -> bool:
    """Whether a number goes on with ``value``, as twenty does with five and not with thirty."""
    if value >= 1000:
        return True
    if value >= 100:
        return group == 0 or (value == 100 and group < 10)
    if previous == 10:
        return 7 <= value <= 9
    tens = previous in (60, 80) and value < 20
    return group % 100 == 0 or tens or (20 <= previous < 100 and previous % 10 == 0 and value < 10)


def _fractions(text: str) -> Iterator[_Said]:
    counts = {"a": 1, "an": 1, **_language("en").values}
    for found in _FRACTION.finditer(text):
        below = _FRACTIONS.get(found[2], 2)
        above = counts.get(found[1] or "")
        if above is not None:
            yield _Said(above / below, *found.span())
        elif below == 2:
            yield _Said(0.5, *found.span(2))
