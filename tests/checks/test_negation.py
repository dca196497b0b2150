# ruff: noqa: RUF001 - words of other scripts are the subject here
"""A denial is heard in the languages people quote."""

import pytest

from harness_core.checks.negation import denied
from harness_core.checks.normalise import normalised


@pytest.mark.parametrize(
    "gap",
    [
        *(
            "was not",
            "never",
            "neither",
            "without",
            "cannot",
            "isn’t",
            "can't",
            "failed to",
            "lacked",
        ),
        *("hardly", "little", "is less", "unlikely to be", "non", "No", "absence of"),
        *("n'est", "ne fut pas", "sans", "jamais", "qu'aucun", "guère"),
        *("nunca", "sin", "ningún", "tampoco", "não", "nem", "sem", "nenhum"),
        *("senza", "mai", "nessuno", "né", "neanche", "nicht", "keine", "ohne", "kaum", "weder"),
        *("niet", "geen", "zonder", "nooit", "ikke", "inte", "aldrig", "ingen", "uten", "ekki"),
        *("nie", "bez", "żaden", "není", "nikdy", "nemá", "nem", "nincs", "nélkül", "nu", "fără"),
        *(
            "nije",
            "nema",
            "nikad",
            "nav",
            "nėra",
            "nuk",
            "mos",
            "değil",
            "yok",
            "çalışmıyor",
            "olmayan",
        ),
        *("ei", "eivät", "ilman", "tidak", "bukan", "tanpa", "không", "chưa", "hapana", "siyo"),
        *("ddim", "heb", "gan", "níl", "mhux", "qatt"),
        *("не", "нет", "без", "никогда", "немає", "няма", "није", "δεν", "ΔΕΝ", "χωρίς", "όχι"),
        *("لا", "ليس", "ولم", "بدون", "غير", "نیست", "هرگز", "نہیں", "לא", "שלא", "אין", "ללא"),
        *("नहीं", "बिना", "না", "নেই", "不", "没有", "並無", "効果はない", "できません", "なく"),
        *("않았다", "없는", "아니다", "안", "못하는", "ไม่", "ปราศจาก"),
        *("ქართული", "தமிழ்", "ትግርኛ", "ລາວ", "ខ្មែរ"),  # scripts that are not read
    ],
)
def test_a_denial_in_a_gap_is_heard(gap: str) -> None:
    assert denied(normalised(f" {gap} ").norm)


@pytest.mark.parametrize(
    "gap",
    [
        *(
            "",
            " — ",
            " 12 % (3) ",
            "in all adults",
            "registration no. X1",
            "reg. no. 12",
            "notably",
        ),
        *(
            "nothingness",
            "the nonetheless",
            "chez les adultes",
            "bei Erwachsenen",
            "en los adultos",
        ),
        *(
            "у взрослых",
            "στους ενήλικες",
            "في البالغين",
            "成年患者",
            "成人の患者",
            "모든 환자",
            "ผู้ป่วย",
        ),
    ],
)
def test_what_does_not_deny_is_let_pass(gap: str) -> None:
    assert not denied(normalised(f" {gap} ").norm)
