"""Records in; a page, a text, JSON and a picture out. Nothing here touches a server, and no other room's code is used.

page.py             render_page: the case study, one HTML page that needs nothing else; write_page: to a path;
                    render_ladder_page, render_tuning_page
text.py             render_text: the same facts at the end of a command; render_curve, render_comparison
json_shapes.py      what other tools read, of every record
*_report.py, forecasts.py    ladders, searches for settings and for capacity, limits, forecasts: text
speedscope.py       sampled stacks for the viewer of that name
*words.py           the sentences that all of these share
"""
