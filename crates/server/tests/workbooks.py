"""Makes a workbook for tests: `workbooks.py KIND PATH`, with its content as JSON on standard input.

- `sheets`: by openpyxl. Each sheet has rows of cells; a cell is a value, or an object with `date`, `formula` or `error`.
- `parts`: a ZIP archive of these texts, by name; a list of a text and a number is that text so many times.
- `rows`: by openpyxl, that many rows of a gift card's columns.
"""

import datetime
import json
import sys
import zipfile


def cell(sheet, value):
    from openpyxl.cell import WriteOnlyCell

    if not isinstance(value, dict):
        return value
    if "date" in value:
        return datetime.datetime.fromisoformat(value["date"])
    if "formula" in value:
        return value["formula"]
    made = WriteOnlyCell(sheet, value=value["error"])
    made.data_type = "e"
    return made


def sheets(path, content):
    import openpyxl

    book = openpyxl.Workbook(write_only=False)
    book.remove(book.active)
    for one in content:
        sheet = book.create_sheet(one["name"])
        for row in one["rows"]:
            sheet.append([cell(sheet, value) for value in row])
        for merged in one.get("merged", []):
            sheet.merge_cells(merged)
        for hidden in one.get("hidden", []):
            sheet.row_dimensions[hidden].hidden = True
    book.save(path)


def parts(path, content):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, pieces in content.items():
            with archive.open(name, "w") as out:
                for piece in pieces:
                    text, count = piece if isinstance(piece, list) else (piece, 1)
                    if "{}" in text:
                        for number in range(count):
                            out.write(text.replace("{}", str(number)).encode())
                        continue
                    many = min(count, max(1, (1 << 20) // max(1, len(text))))
                    for _ in range(count // many):
                        out.write(text.encode() * many)
                    out.write(text.encode() * (count % many))


def rows(path, content):
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Products")
    sheet.append(content["columns"])
    for number in range(content["rows"]):
        sheet.append([str(value).replace("{}", str(number)) for value in content["row"]])
    book.save(path)


if __name__ == "__main__":
    {"sheets": sheets, "parts": parts, "rows": rows}[sys.argv[1]](sys.argv[2], json.load(sys.stdin))
