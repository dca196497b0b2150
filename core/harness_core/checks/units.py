"""Units of measure, where they change what a number says."""

import re

import regex

_WORDS = """
percent per\\scent percentage\\spoints points point pp bps fold times
years year yrs yr months month mo weeks week wk days day hours hour hrs hr h minutes minute mins
min
seconds second secs sec s ms µs ns am pm
kg g mg µg mcg ng pg t tonnes tonne tons ton lb lbs oz stone grams gram kilograms kilogram
milligrams
milligram micrograms microgram
km m dm cm mm µm nm ft feet foot inches inch miles mile mi yd yards yard metres metre meters meter
kilometres kilometre kilometers kilometer centimetres centimetre millimetres millimetre
m2 m3 m² m³ km² km2 cm² cm³ cm2 cm3 cc ha hectares hectare acres acre
l dl ml µl cl litres litre liters liter millilitres millilitre milliliters milliliter gallons
gallon
mol mmol µmol nmol pmol M mM µM nM mmhg mmHg kpa Pa kPa MPa hPa bar mbar atm psi dB
Hz kHz MHz GHz THz W kW MW GW TW mW kWh MWh GWh TWh Wh J kJ MJ cal kcal V kV mV A mA Ah mAh N kN
K C F celsius fahrenheit kelvin degrees degree
b B kb kB KB Mb MB mb Gb GB Tb TB bit bits byte bytes Mbps Gbps kbps
IU U mIU mEq meq ppm ppb CI x
hundred thousand million millions billion billions trillion trillions bn mn tn k dozen
Tausend Millionen Million Milliarden Milliarde Mio Mrd Prozent pour\\scent mille millón millones
millares
milhões milhão milioni milione miliardi miljoen miljard procent porcentaje
USD EUR GBP JPY CNY CHF INR dollars dollar euros euro pounds pound pence cents cent yen yuan
francs
rupees crore lakh
""".replace("\u00b5", "\u03bc")
_SPELLED = sorted(set(_WORDS.split()), key=lambda word: (-len(word), word))
_ONE = (
    r"(?:[%\u2030\u2031\u2103\u2109]|[\u00b0\u00ba]\s?[CFKcfk]?|\p{Sc}|[十百千万萬亿億兆]"
    rf"|(?:{'|'.join(_SPELLED)})(?![\p{{L}}\p{{M}}]))"
)
UNIT = rf"{_ONE}(?:\s?/\s?(?:{_ONE}|[\p{{L}}]+))*"
"""What may follow a number as its unit, \"mg/kg\" and \"°C\" included; for the module ``regex``."""

_BY_CASE = frozenset(
    """
    mW MW mV MV mHz MHz mPa MPa mJ MJ mg Mg mm mM Mm kb kB Mb MB mb Gb GB mA MA ms mS MS m M k K
    """.split()  # noqa: SIM905 - a table of words reads best as one
)
"""Units whose case is a matter of powers of ten, or of bits and bytes."""
_CASED = regex.compile(r"(?:^|[\p{Nd}\p{No}][\s-]?)([A-Za-z]{1,3})(?!\p{L})")
_SIGN = re.compile(r"(?<![^\W_])([-\u2010-\u2015\u2212])(?=[$€£¥₹]?[.,]?\d)")
_FEW_LETTERS = 8
_LONG_DASHES = "\u2014\u2015"


def unit_name(unit: str) -> str:
    """``unit`` so that two spellings of one unit compare equal, and two units do not."""
    bare = "".join(unit.split())
    if bare[:1] in ("\u00b0", "\u00ba"):
        return "\u00b0" + bare[1:].upper()
    return bare if bare in _BY_CASE else bare.lower()


def same_measures(quotation: str, source: str) -> bool:
    """Whether two texts that are equal once folded also agree in what folding hides of numbers.

    That is a minus sign against a long dash, and units that differ by case alone, like mW and MW
    (text in capitals throughout tells none apart).
    """
    if _signs(quotation) != _signs(source):
        return False
    if _in_capitals(quotation) or _in_capitals(source):
        return True
    units = zip(_CASED.findall(quotation), _CASED.findall(source), strict=False)
    return all(one == other or not {one, other} <= _BY_CASE for one, other in units)


def _signs(text: str) -> list[bool]:
    return [sign in _LONG_DASHES for sign in _SIGN.findall(text)]


def _in_capitals(text: str) -> bool:
    return text.isupper() and sum(map(str.isalpha, text)) >= _FEW_LETTERS
