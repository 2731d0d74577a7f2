"""task_secrets_put: fields are added, and removed only on request."""

from __future__ import annotations

from detent.model.service_records import TaskSecrets
from detent.store.contract import Store
from tests.contract.refusals import Untouched


def test_older_code_removes_none(store: Store, untouched: Untouched) -> None:
    """S4: during an upgrade an old worker starts after a new one."""
    both = TaskSecrets(task="pay", paths=("card", "customer.iban"))
    store.task_secrets_put([both, TaskSecrets(task="mail", paths=("to",))], False)
    with untouched():
        store.task_secrets_put([TaskSecrets(task="pay", paths=("card",)), TaskSecrets(task="mail", paths=())], False)
    assert store.task_secrets_list() == [TaskSecrets(task="mail", paths=("to",)), both]


def test_they_are_replaced_on_request(store: Store) -> None:
    store.task_secrets_put(
        [TaskSecrets(task="pay", paths=("card", "pin")), TaskSecrets(task="mail", paths=("to",))], False
    )
    store.task_secrets_put([TaskSecrets(task="pay", paths=("iban", "pin")), TaskSecrets(task="gone", paths=())], True)
    store.task_secrets_put([], True)
    assert store.task_secrets_list() == [
        TaskSecrets(task="mail", paths=("to",)),
        TaskSecrets(task="pay", paths=("iban", "pin")),
    ]
    store.task_secrets_put([TaskSecrets(task="mail", paths=())], True)
    assert [one.task for one in store.task_secrets_list()] == ["pay"]
