"""loadframe serve RUNS: the live page."""

from pathlib import Path
from typing import Annotated

import typer

from loadframe.cli.common import RUNS, Json, command
from loadframe.cli.terminal import answer, emit


def serve(
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Folders of runs, or single runs; runs/ by default.")
    ] = None,
    port: Annotated[int, typer.Option(metavar="PORT", help="The port on 127.0.0.1; 0: any that is free.")] = 0,
    as_json: Json = False,
) -> None:
    """Show runs in a browser, also while they are measured. Ends with Ctrl-C."""
    with command(as_json):
        from loadframe.experiments.reading import answer_of, conclude
        from loadframe_live.serving import Address
        from loadframe_live.serving import serve as serve_page
        from loadframe_live.view import Reads

        def told(address: Address) -> None:
            if as_json:
                shape = {
                    "schema": "loadframe.serve/1",
                    "url": address.url,
                    "port": address.port,
                    "token": address.token,
                }
                emit(shape, with_secrets=True)
            else:
                answer(f"Open {address.url}\nThe address is a key: whoever has it can read these runs. Ctrl-C ends it.")

        serve_page(runs or [RUNS], reads=Reads(conclude, answer_of), port=port, told=told)
