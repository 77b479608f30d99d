"""The search for better settings: what to try next, and what the trials say. It never touches a server.

space       the settings that may be varied, each with its values, and what must fit together
surrogate   what the trials say of every setting: a regression that knows noise and drift
search      propose and observe
"""
