"""English words brought to a common form, and which of them carry meaning."""

import re

STOPPED = frozenset(
    """a about above according after all along also am among an and any are as at be been before
    being between both but by can could did do does doing done during each either else ever every
    find for from further get give given had has have having he her here hers him his how i if in
    into is it its itself just list many may me mention mentioned might more most much must my name
    no nor not of off on once one only or other our out over own per please said same say says she
    should so some someone something state stated such tell than that the their them then there
    these they this those through to too under until up upon us was we were what when where whether
    which while who whom whose why will with within would you your""".split()  # noqa: SIM905 - a text of words reads better than a list
)

_IRREGULAR = {
    form: base
    for base, forms in {
        "become": "became", "begin": "began begun", "bring": "brought", "build": "built",
        "buy": "bought", "child": "children", "choose": "chose chosen", "come": "came",
        "fall": "fell fallen", "find": "found", "foot": "feet", "give": "gave", "go": "went gone",
        "grow": "grew grown", "hold": "held", "keep": "kept", "know": "knew known", "lay": "laid",
        "lead": "led", "leave": "left", "lose": "lost", "make": "made", "man": "men",
        "meet": "met", "pay": "paid", "person": "people", "rise": "rose risen", "run": "ran",
        "sell": "sold", "send": "sent", "spend": "spent", "take": "took taken", "win": "won",
        "woman": "women", "write": "wrote written",
    }.items()
    for form in forms.split()
}  # fmt: skip


def stem(word: str) -> str:
    """A lower-case word without its common endings; equal stems are taken for one word."""
    word = _IRREGULAR.get(word, word)
    if len(word) <= 3 or not word.isascii() or not word.isalpha():
        return word
    return _bare(_singular(word))


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and word[-2] not in "sui" else word


def _bare(word: str) -> str:
    for ending in ("ing", "ed", "ion", "ly"):
        left = word.removesuffix(ending)
        if left != word and len(left) >= 3 and re.search("[aeiouy]", left):
            word = left
            break
    word = word.rstrip("e")
    if word.endswith("at") and len(word) >= 6:
        word = word[:-2]
    doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou"
    return word[:-1] if doubled else word


def stems(text: str) -> list[str]:
    """The stems of the words of ``text``, in order; numbers stay as they are written."""
    from harness_core.ranking.terms import terms

    return [stem(word) for word in terms(text)]


def content(text: str) -> list[str]:
    """The stems that carry meaning, each once."""
    from harness_core.ranking.terms import terms

    return list(dict.fromkeys(stem(word) for word in terms(text) if word not in STOPPED))
