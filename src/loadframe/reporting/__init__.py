"""Records in; a page, a text, JSON and a picture out. Nothing here touches a server, and no other room's code is used.

document.py is a report as a record, built once; terminal.py shows it as text, html.py as a page, markdown.py in
Markdown. case_study.py is that of an investigation, *_report.py those of other records, and reports.py finds the one of
a run; json_shapes.py and exports.py are what other tools read.
"""
