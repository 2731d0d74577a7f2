"""The programs that are measured: Detent, the floor and the peers, each behind the same few commands.

A contender is a program that is called with a command and a count, and finds the address of its database in BENCH_URL
and a directory for its board in BENCH_BOARD. It answers with one line of JSON. Each knows the commands it can serve:

    prepare 0      make its schema in an empty database
    one N          enqueue N no-op jobs one by one through its ordinary call, each durable on return
    bulk N         enqueue N through its call for many, 1,000 a call
    callers N      the same from one caller, from threads and from coroutines
    bulk-writes N  enqueue N jobs that each write one row into the table `ledger`
    work N         run N worker processes until told to stop, or until nothing is left; bodies mark the board
    pick-up N      N times: enqueue one, wait until its body ran, pause; its worker runs meanwhile
    inside N       the same, with each job enqueued by the one before it, inside the worker
    writes N       do N such jobs itself, one transaction each

Peers run in environments of their own below `.peers/`, which `make peers` installs; these modules are run there with
`-m` from the root of the repository, and therefore import nothing of ours but each other.
"""
