"""The model: records, and the ports through which time, ids and JSON enter.

Nothing here knows a database, a thread or a socket. `clock` and `ids` are the only modules that use time and
randomness. `json_codec` checks all JSON; `stored_text` accepts every text of an error.
"""
