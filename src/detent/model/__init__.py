"""The model room: records, and the ports through which time, ids and JSON enter.

Nothing here knows a database, a thread or a socket. `clock` and `ids` are the only places that touch time and
randomness; `jsondoor` is the only way in for JSON; `sanitize` is the way in for what must never be refused.
"""
