"""A date written out in the languages users most often have, without the system's locales: most machines have none installed."""

from __future__ import annotations

import time

# Language → how a date is put together ({w} weekday, {d} day, {m} month, {y} year), weekdays from Monday, months as they stand in a date.
_LANGUAGES = {
    "zh": ("{y}年{m}月{d}日星期{w}", "一 二 三 四 五 六 日", ""),
    "ja": ("{y}年{m}月{d}日{w}曜日", "月 火 水 木 金 土 日", ""),
    "ko": ("{y}년 {m}월 {d}일 {w}요일", "월 화 수 목 금 토 일", ""),
    "de": (
        "{w}, {d}. {m} {y}",
        "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    ),
    "fr": (
        "{w} {d} {m} {y}",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    ),
    "es": (
        "{w}, {d} de {m} de {y}",
        "lunes martes miércoles jueves viernes sábado domingo",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    ),
    "it": (
        "{w} {d} {m} {y}",
        "lunedì martedì mercoledì giovedì venerdì sabato domenica",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    ),
    "pt": (
        "{w}, {d} de {m} de {y}",
        "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo",
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    ),
    "nl": (
        "{w} {d} {m} {y}",
        "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
        "januari februari maart april mei juni juli augustus september oktober november december",
    ),
    "sv": (
        "{w} {d} {m} {y}",
        "måndag tisdag onsdag torsdag fredag lördag söndag",
        "januari februari mars april maj juni juli augusti september oktober november december",
    ),
    "da": (
        "{w} den {d}. {m} {y}",
        "mandag tirsdag onsdag torsdag fredag lørdag søndag",
        "januar februar marts april maj juni juli august september oktober november december",
    ),
    "nb": (
        "{w} {d}. {m} {y}",
        "mandag tirsdag onsdag torsdag fredag lørdag søndag",
        "januar februar mars april mai juni juli august september oktober november desember",
    ),
    "pl": (
        "{w}, {d} {m} {y}",
        "poniedziałek wtorek środa czwartek piątek sobota niedziela",
        "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    ),
    "cs": (
        "{w} {d}. {m} {y}",
        "pondělí úterý středa čtvrtek pátek sobota neděle",
        "ledna února března dubna května června července srpna září října listopadu prosince",
    ),
    "ru": (
        "{w}, {d} {m} {y} г.",
        "понедельник вторник среда четверг пятница суббота воскресенье",
        "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    ),
    "uk": (
        "{w}, {d} {m} {y} р.",
        "понеділок вівторок середа четвер пʼятниця субота неділя",
        "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
    ),
    "tr": (
        "{d} {m} {y} {w}",
        "Pazartesi Salı Çarşamba Perşembe Cuma Cumartesi Pazar",
        "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",
    ),
}
_ALIKE = {"no": "nb", "nn": "nb"}
_SPACED = ("TW", "HK", "MO")
"""Where Chinese puts a space before the weekday."""


def write_date(when: time.struct_time, language: str, country: str = "") -> str:
    """The date in full: `2026年11月16日星期一`, `Montag, 16. November 2026`. Empty if the language is not one of ours."""
    found = _LANGUAGES.get(_ALIKE.get(language, language))
    if found is None:
        return ""
    form, weekdays, months = found
    if language == "zh" and country in _SPACED:
        form = form.replace("日星", "日 星")
    month = months.split()[when.tm_mon - 1] if months else str(when.tm_mon)
    return form.format(w=weekdays.split()[when.tm_wday], d=when.tm_mday, m=month, y=when.tm_year)
