"""Renders records as page, text, JSON and pictures; touches no server and imports no other room's code. document.py is
a report as a record, built once; terminal.py, html.py and markdown.py render it. case_study.py builds that of an
investigation, *_report.py those of other records, and reports.py finds the one of a run; json_shapes.py is what other
tools read."""
