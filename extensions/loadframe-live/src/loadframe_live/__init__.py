"""The live page: runs as they are measured, shown in a browser on this machine (docs/live.md). It only reads."""
