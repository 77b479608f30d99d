"""Records in; a page, a text, JSON and a picture out. Nothing here touches a server, and no other room's code is used.

document.py         a report as a record, built once; terminal.py shows it as text, html.py as a page
case_study.py       the document of an investigation; render_page, render_text, write_page: to a path
json_shapes.py      what other tools read, of every record
*_report.py, forecasts.py    ladders, searches for settings and for capacity, limits, forecasts
speedscope.py       sampled stacks for the viewer of that name
*words.py           the sentences that all of these share
"""
