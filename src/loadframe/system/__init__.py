"""The machine below everything else: files. Nothing here knows what a run, a server or a study is."""
