"""The tests of the first example: the fixture `detent` gives each of them a database of its own."""

import shop


def test_welcome(detent):
    detent.use(shop.app)
    job = shop.welcome.enqueue(user_id=7)
    detent.work()  # does what a worker does, until nothing is due
    assert job.refresh().result == "sent to 7"


def test_expense(detent):
    detent.use(shop.app)
    job = shop.expense.enqueue(amount=30)
    detent.crash(job, at="recorded file")  # the worker dies; the step is on record
    detent.work(skip=True)
    job.signal("decision", True, actor="ana")
    detent.work()
    assert job.refresh().result == "report about 30 EUR: paid"


def test_reprice(detent, tmp_path, monkeypatch):
    prices = tmp_path / "prices"
    prices.mkdir()
    monkeypatch.setattr(shop, "PRICES", prices)
    (prices / "ring").write_text("100")
    detent.use(shop.app)
    run = shop.app.runs.preview(shop.Reprice(percent=10), actor="ana")
    detent.work()
    assert [(one.ref, one.before, one.after) for one in run.changes()] == [("ring", 100, 110)]
    run.apply(actor="ana")
    detent.work()
    assert (prices / "ring").read_text() == "110"
    run.roll_back(actor="ana", reason="too expensive")
    detent.work()
    assert (prices / "ring").read_text() == "100"
