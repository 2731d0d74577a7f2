"""The public surface is pinned: a name more or less is a decision, not an accident."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import detent

EXPORTED = [
    "AcceptedDelivery",
    "Alert",
    "AlertPolicy",
    "Arrival",
    "AsyncBatchRun",
    "AsyncChildGroup",
    "AsyncDetent",
    "AsyncGraph",
    "AsyncGroupResult",
    "AsyncJob",
    "AsyncJobSelection",
    "AsyncOperation",
    "AsyncPipelineRun",
    "AsyncReconciliation",
    "AsyncRun",
    "AsyncTransactionClient",
    "AsyncTx",
    "AsyncWorker",
    "AsyncWorkflowContext",
    "BatchRun",
    "BeingUndone",
    "Call",
    "Cancelled",
    "Change",
    "Child",
    "ChildCounts",
    "ChildFailed",
    "ChildGroup",
    "Context",
    "CopyRefused",
    "CreatedToken",
    "Critical",
    "DeadGroup",
    "Declarations",
    "Delivery",
    "Detent",
    "Environment",
    "Event",
    "Execution",
    "Fatal",
    "FetchedPartition",
    "Figures",
    "Graph",
    "GroupResult",
    "HistoryFull",
    "Identity",
    "IncomingWebhook",
    "Invariant",
    "Job",
    "JobCancelled",
    "JobCount",
    "JobDetails",
    "JobEnded",
    "JobSelection",
    "JobTree",
    "Lifecycle",
    "Limit",
    "LimitState",
    "ListPage",
    "Local",
    "MailboxFull",
    "Mismatch",
    "Moved",
    "Node",
    "Operation",
    "OpsRun",
    "Page",
    "ParkSwallowed",
    "Partition",
    "PipelineRun",
    "Probed",
    "Queue",
    "QueueRecovery",
    "Rates",
    "Reconciliation",
    "ReconciliationState",
    "RecordedStep",
    "RecordedTransition",
    "RepairStep",
    "Retry",
    "Run",
    "Schedule",
    "SignalSent",
    "SilentJob",
    "SinkOutcome",
    "Snooze",
    "StateCount",
    "Step",
    "StepAmbiguous",
    "StepCall",
    "Stream",
    "StreamLine",
    "Target",
    "TargetChange",
    "TargetContext",
    "Task",
    "Throttled",
    "Token",
    "TokenUsed",
    "TransactionClient",
    "Transition",
    "TreeNode",
    "Tx",
    "Undo",
    "UndoRefused",
    "Violation",
    "Wait",
    "WaitOver",
    "WaitTimeout",
    "Watermark",
    "Webhook",
    "WebhookDelivery",
    "WebhookTarget",
    "Worker",
    "Workflow",
    "WorkflowCheck",
    "WorkflowContext",
    "WorkflowDrift",
    "WorkflowVersion",
    "WorkflowWait",
    "WrongToken",
    "errors",
    "shell",
    "split_by_count",
]


def test_the_package_exports_exactly_these_names() -> None:
    assert detent.__all__ == EXPORTED == sorted(EXPORTED)


def test_what_is_exported_is_there_and_nothing_else_is_visible() -> None:
    assert dir(detent) == EXPORTED
    for name in EXPORTED:
        assert getattr(detent, name) is not None
    visible = {name for name in vars(detent) if not name.startswith("_")}
    rooms = {name for name in visible if inspect.ismodule(getattr(detent, name))}
    assert visible - rooms == set(EXPORTED) - {"errors"}
    with pytest.raises(AttributeError, match="Wheel"):
        _ = detent.Wheel


def test_what_needs_little_imports_little() -> None:
    """W1: a supervisor has neither the application nor the parts of a client in it."""
    look = "import sys, detent.worker.supervisor.__main__; print([m for m in sys.modules if m.startswith('detent.')])"
    found = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
    assert "detent.worker.supervisor.process" in found
    assert not [room for room in ("detent.app", "detent.client", "detent.cli", "detent.declare") if room in found]
