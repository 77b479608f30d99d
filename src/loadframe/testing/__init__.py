"""What whoever writes an extension tests it with: contract suites, and the fixtures that they need. Needs pytest."""
