"""The test of the first job: the fixture `detent` gives it a database of its own."""

import shop


def test_welcome(detent):
    detent.use(shop.app)
    job = shop.welcome.enqueue(user_id=7)
    detent.work()
    assert job.refresh().result == "sent to 7"
