# ruff: noqa: RUF001 - marks and letters of other scripts are the subject here
"""Words that deny, in the languages people quote, so that leaving one out is noticed.

The list errs on the side of hearing a denial, for it serves to refuse what leaves one out. Words
that are among the commonest of another language (Finnish "en", Maltese "la") are left aside.
"""

from collections.abc import Iterator

import regex

from harness_core.checks.normalise import UNSPACED, composed, folded

_WORDS = """
not no never neither nor none without cannot non nobody nothing nowhere noone nay
failed fail fails failing failure failures lack lacks lacked lacking absence absent
hardly scarcely barely seldom rarely little less least few fewer minus except excluding unless
unable unlikely impossible untrue false incorrect denied denies deny denying refused refuses
refuted
disproved contrary ceased insufficient inadequate ineffective negative
ne pas jamais aucun aucune aucuns aucunes rien sans ni nul nulle guère peu non personne nullement
sin nunca jamás nada nadie ningún ninguno ninguna ningunos ningunas tampoco apenas poco
não nao nem sem nenhum nenhuma ninguém jamais nada pouco tampouco
senza mai nessun nessuno nessuna né nulla niente neanche nemmeno neppure mica
nicht kein keine keinen keinem keiner keines nie niemals nichts ohne weder noch kaum niemand
nirgends
selten wenig weniger mangels nein
niet geen nooit niets zonder noch nergens nauwelijks zelden weinig nee
ikke ikkje inte ej icke aldri aldrig ingen inget inga intet ingenting uden uten utan hverken
varken ekki
engin ekkert enginn án
nie ani nigdy bez żaden żadna żadne żadnego żadnej nikt nic niema brak
není nejsou nebyl nebyla nebylo nebyli nebude nebudou nemá nemají neměl nemůže nemohou nelze nikdy
žádný
žádná žádné nikdo nikoli
nem sem nincs nincsenek soha nélkül semmi senki egyik sincs
nu fără nici niciodată nimic nimeni niciun nicio
nije nisu nisam nismo nema nemaju nikad nikada niti nijedan ništa nikto nič niet ni niso nima
nikoli brez
nav nebija nebūs nekad nevar neviens nėra nebuvo nebus nebūtų niekada nieko nei neturi negali
nuk mos asnjë kurrë asgjë
değil yok yoktur hiç hayır olmadan asla olmayan değildi değildir hiçbir olmadı
ei emme ette eivät eikä älä ilman eivätkä mitään koskaan
tidak bukan tanpa belum jangan tak tiada
không chưa chẳng chả đừng chớ
hapana bila si siyo hakuna kamwe sio
ddim dim nid nac heb byth
ní níl cha gan níor níorbh
mhux mhix mhijiex mhumiex bla qatt xejn ebda
не ни нет без никогда никто ничто ничего нельзя невозможно отсутствие отсутствует отсутствуют нету
неть
ні немає ніколи ніхто ніщо няма никога нито никой нищо није нису нема никад ня ніколі едва вряд
δεν δε μη μην όχι χωρίς ούτε ποτέ κανένας καμία κανένα κανείς τίποτα δίχως ουδείς ουδέποτε
لا لم لن ليس ليست ليسوا ليسا ما غير بدون دون عدم كلا بلا بغير أبدا
نه نیست نبود نیستند هیچ هرگز نمی نباید ندارد نداشت نشد نکرد بی
نہیں نہ مت بغیر بنا کبھی
לא אין אינו אינה אינם אינן בלי ללא אל טרם מעולם בלתי איננו איננה
नहीं न मत बिना ना नही कभी
না নয় নেই নি নাই বিনা নয়
"""
_NEGATIVE = frozenset(folded(composed(_WORDS)).split())
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}']*|'t\b")
_CLITIC = regex.compile(r"[وفבשהו]")
_TURKISH = regex.compile(
    r"\p{L}{2,}m(?:[ae]d[ıi]\p{L}*|[ae]y[ae]n\p{L}*|[ıiuü]yor\p{L}*|[ae]m[ıi]ş\p{L}*)"
)
_INSIDE = regex.compile(
    "[不没沒無无非未否莫勿别別毋弗甭]|ない|なかっ|なく|なければ|なし|ません|ませぬ|せず|らず|まい"
    "|않|없|아니|아닌|아닙|못하|못했|못한|불가|ไม่|มิได้|มิใช่|ไร้|ปราศจาก|อย่า|ห้าม"
)
_KOREAN = frozenset({"안", "못"})
_ABBREVIATION = regex.compile(r"\bno\.(?=\s*[#\p{L}-]*\d)")
_UNREAD = regex.compile(
    rf"""[\p{{L}}--[\p{{sc=Latin}}\p{{sc=Cyrillic}}\p{{sc=Greek}}\p{{sc=Arabic}}\p{{sc=Hebrew}}
    \p{{sc=Devanagari}}\p{{sc=Bengali}}\p{{sc=Hangul}}\p{{sc=Common}}{UNSPACED}]]
    |[\p{{sc=Lao}}\p{{sc=Khmer}}\p{{sc=Myanmar}}]""",
    regex.VERSION1 | regex.VERBOSE,
)


def negations(text: str) -> Iterator[tuple[int, str]]:
    """Where folded ``text`` denies, and with which word, in no particular order."""
    abbreviations = {found.start() for found in _ABBREVIATION.finditer(text)}
    for found in _WORD.finditer(text):
        if _denies(found[0]) and found.start() not in abbreviations:
            yield found.start(), found[0]
    for found in _INSIDE.finditer(text):
        yield found.start(), found[0]


def denied(text: str) -> bool:
    """Whether folded ``text`` denies, or is in a script whose denials are not read here."""
    return _UNREAD.search(text) is not None or next(negations(text), None) is not None


def _denies(word: str) -> bool:
    bare = word.strip("'")
    return (
        bare in _KOREAN
        or any(part in _NEGATIVE for part in bare.split("'"))
        or word.endswith(("n't", "'t"))
        or word.startswith("n'")
        or (_CLITIC.match(bare) is not None and bare[1:] in _NEGATIVE)
        or _TURKISH.fullmatch(bare) is not None
    )
