"""Detent: a durable run engine for Python.

A job moves through a declared lifecycle that the database itself enforces; its effect is committed exactly once; every
transition is on record. These names are the public surface; everything else is private. Each is imported when it is
first used, so that a process which needs little of it stays small.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from detent import errors
    from detent.alerts.sinks import Outcome as SinkOutcome
    from detent.app.aio_batch_run import AsyncBatchRun
    from detent.app.aio_detent import AsyncDetent
    from detent.app.aio_pipeline_run import AsyncPipelineRun
    from detent.app.aio_reconciliation import AsyncReconciliation
    from detent.app.aio_run_handle import AsyncRun
    from detent.app.aio_workers import AsyncWorker
    from detent.app.batch_run import BatchRun, TargetChange
    from detent.app.detent import Detent
    from detent.app.pipeline_run import PipelineRun
    from detent.app.reconciliation import Mismatch, Reconciliation
    from detent.app.record import Invariant
    from detent.app.registry import Declarations
    from detent.app.runs import Run
    from detent.app.workers import Worker
    from detent.client.aio_client import AioDirectClient as AsyncTransactionClient
    from detent.client.aio_graph import AsyncGraph
    from detent.client.aio_job import AsyncJob
    from detent.client.aio_operation import AsyncJobSelection, AsyncOperation
    from detent.client.client import DirectClient as TransactionClient
    from detent.client.graph import Graph, Node
    from detent.client.job import Job
    from detent.client.list_page import ListPage
    from detent.client.operation import JobSelection, Operation
    from detent.client.task import SendableTask as Task
    from detent.declare.batch import Change
    from detent.declare.context import AsyncTx, Context, TargetContext, Tx
    from detent.declare.limit import Limit
    from detent.declare.pipeline import Page, Partition, split_by_count
    from detent.declare.probe import Probed
    from detent.declare.signals import Critical, Fatal, JobCancelled, Snooze, Throttled
    from detent.declare.task import Call
    from detent.declare.workflow import Local, Step, StepCall
    from detent.declare.workflow_context import (
        Arrival,
        AsyncChildGroup,
        AsyncGroupResult,
        AsyncWorkflowContext,
        Child,
        ChildGroup,
        GroupResult,
        Stream,
        Wait,
        WorkflowContext,
    )
    from detent.errors import (
        BeingUndone,
        ChildFailed,
        CopyRefused,
        HistoryFull,
        JobEnded,
        MailboxFull,
        ParkSwallowed,
        StepAmbiguous,
        TokenUsed,
        UndoRefused,
        WaitOver,
        WaitTimeout,
        WorkflowDrift,
        WrongToken,
    )
    from detent.lifecycle.definition import Lifecycle, Transition
    from detent.model.alert_records import AlertRow as Alert
    from detent.model.alert_records import DeliveryRow as Delivery
    from detent.model.alert_records import Policy as AlertPolicy
    from detent.model.backoff import Retry
    from detent.model.batch_records import ReconciliationRow as ReconciliationState
    from detent.model.batch_records import TargetRow as Target
    from detent.model.figure_records import Figures, Rates
    from detent.model.limit_records import LimitRow as LimitState
    from detent.model.ops_records import EnvironmentRow as Environment
    from detent.model.pipeline_records import PartitionRow as FetchedPartition
    from detent.model.pipeline_records import WatermarkRow as Watermark
    from detent.model.records import Cancelled, JobDetails, Moved, RepairStep, Violation
    from detent.model.records import Count as JobCount
    from detent.model.records import EventRow as Event
    from detent.model.records import ExecutionRow as Execution
    from detent.model.records import TransitionRow as RecordedTransition
    from detent.model.service_records import DeadGroup
    from detent.model.service_records import IdentityRow as Identity
    from detent.model.service_records import RecoveryRow as QueueRecovery
    from detent.model.service_records import ScheduleRow as Schedule
    from detent.model.service_records import SilentRow as SilentJob
    from detent.model.stream_records import StreamLine
    from detent.model.token_records import CreatedToken
    from detent.model.token_records import TokenRow as Token
    from detent.model.webhook_records import WebhookRow as Webhook
    from detent.model.webhook_records import WebhookTargetRow as WebhookTarget
    from detent.model.workflow_records import ChildGroupRow as ChildCounts
    from detent.model.workflow_records import JobTree, SignalSent, TreeNode, Undo, Workflow
    from detent.model.workflow_records import StepRow as RecordedStep
    from detent.model.workflow_records import VersionCount as WorkflowVersion
    from detent.model.workflow_records import WaitRow as WorkflowWait
    from detent.ops.ops_run import OpsRun
    from detent.views.queues import Queue
    from detent.views.state_counts import StateCount
    from detent.webhooks.delivery import WebhookDelivery
    from detent.webhooks.incoming import AcceptedDelivery, IncomingWebhook
    from detent.worker.shell_task import shell
    from detent.workflow.aio_check import WorkflowCheck

__all__ = [
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

__version__ = "0.1.0"

_HOMES = {
    "AcceptedDelivery": "webhooks.incoming.AcceptedDelivery",
    "Alert": "model.alert_records.AlertRow",
    "AlertPolicy": "model.alert_records.Policy",
    "Arrival": "declare.workflow_context.Arrival",
    "AsyncBatchRun": "app.aio_batch_run.AsyncBatchRun",
    "AsyncChildGroup": "declare.workflow_context.AsyncChildGroup",
    "AsyncDetent": "app.aio_detent.AsyncDetent",
    "AsyncGraph": "client.aio_graph.AsyncGraph",
    "AsyncGroupResult": "declare.workflow_context.AsyncGroupResult",
    "AsyncJob": "client.aio_job.AsyncJob",
    "AsyncJobSelection": "client.aio_operation.AsyncJobSelection",
    "AsyncOperation": "client.aio_operation.AsyncOperation",
    "AsyncPipelineRun": "app.aio_pipeline_run.AsyncPipelineRun",
    "AsyncReconciliation": "app.aio_reconciliation.AsyncReconciliation",
    "AsyncRun": "app.aio_run_handle.AsyncRun",
    "AsyncTransactionClient": "client.aio_client.AioDirectClient",
    "AsyncTx": "declare.context.AsyncTx",
    "AsyncWorker": "app.aio_workers.AsyncWorker",
    "AsyncWorkflowContext": "declare.workflow_context.AsyncWorkflowContext",
    "BatchRun": "app.batch_run.BatchRun",
    "BeingUndone": "errors.BeingUndone",
    "Call": "declare.task.Call",
    "Cancelled": "model.records.Cancelled",
    "Change": "declare.batch.Change",
    "Child": "declare.workflow_context.Child",
    "ChildCounts": "model.workflow_records.ChildGroupRow",
    "ChildFailed": "errors.ChildFailed",
    "ChildGroup": "declare.workflow_context.ChildGroup",
    "Context": "declare.context.Context",
    "CopyRefused": "errors.CopyRefused",
    "CreatedToken": "model.token_records.CreatedToken",
    "Critical": "declare.signals.Critical",
    "DeadGroup": "model.service_records.DeadGroup",
    "Declarations": "app.registry.Declarations",
    "Delivery": "model.alert_records.DeliveryRow",
    "Detent": "app.detent.Detent",
    "Environment": "model.ops_records.EnvironmentRow",
    "Event": "model.records.EventRow",
    "Execution": "model.records.ExecutionRow",
    "Fatal": "declare.signals.Fatal",
    "FetchedPartition": "model.pipeline_records.PartitionRow",
    "Figures": "model.figure_records.Figures",
    "Graph": "client.graph.Graph",
    "GroupResult": "declare.workflow_context.GroupResult",
    "HistoryFull": "errors.HistoryFull",
    "Identity": "model.service_records.IdentityRow",
    "IncomingWebhook": "webhooks.incoming.IncomingWebhook",
    "Invariant": "app.record.Invariant",
    "Job": "client.job.Job",
    "JobCancelled": "declare.signals.JobCancelled",
    "JobCount": "model.records.Count",
    "JobDetails": "model.records.JobDetails",
    "JobEnded": "errors.JobEnded",
    "JobSelection": "client.operation.JobSelection",
    "JobTree": "model.workflow_records.JobTree",
    "Lifecycle": "lifecycle.definition.Lifecycle",
    "Limit": "declare.limit.Limit",
    "LimitState": "model.limit_records.LimitRow",
    "ListPage": "client.list_page.ListPage",
    "Local": "declare.workflow.Local",
    "MailboxFull": "errors.MailboxFull",
    "Mismatch": "app.reconciliation.Mismatch",
    "Moved": "model.records.Moved",
    "Node": "client.graph.Node",
    "Operation": "client.operation.Operation",
    "OpsRun": "ops.ops_run.OpsRun",
    "Page": "declare.pipeline.Page",
    "ParkSwallowed": "errors.ParkSwallowed",
    "Partition": "declare.pipeline.Partition",
    "PipelineRun": "app.pipeline_run.PipelineRun",
    "Probed": "declare.probe.Probed",
    "Queue": "views.queues.Queue",
    "QueueRecovery": "model.service_records.RecoveryRow",
    "Rates": "model.figure_records.Rates",
    "Reconciliation": "app.reconciliation.Reconciliation",
    "ReconciliationState": "model.batch_records.ReconciliationRow",
    "RecordedStep": "model.workflow_records.StepRow",
    "RecordedTransition": "model.records.TransitionRow",
    "RepairStep": "model.records.RepairStep",
    "Retry": "model.backoff.Retry",
    "Run": "app.runs.Run",
    "Schedule": "model.service_records.ScheduleRow",
    "SignalSent": "model.workflow_records.SignalSent",
    "SilentJob": "model.service_records.SilentRow",
    "SinkOutcome": "alerts.sinks.Outcome",
    "Snooze": "declare.signals.Snooze",
    "StateCount": "views.state_counts.StateCount",
    "Step": "declare.workflow.Step",
    "StepAmbiguous": "errors.StepAmbiguous",
    "StepCall": "declare.workflow.StepCall",
    "Stream": "declare.workflow_context.Stream",
    "StreamLine": "model.stream_records.StreamLine",
    "Target": "model.batch_records.TargetRow",
    "TargetChange": "app.batch_run.TargetChange",
    "TargetContext": "declare.context.TargetContext",
    "Task": "client.task.SendableTask",
    "Throttled": "declare.signals.Throttled",
    "Token": "model.token_records.TokenRow",
    "TokenUsed": "errors.TokenUsed",
    "TransactionClient": "client.client.DirectClient",
    "Transition": "lifecycle.definition.Transition",
    "TreeNode": "model.workflow_records.TreeNode",
    "Tx": "declare.context.Tx",
    "Undo": "model.workflow_records.Undo",
    "UndoRefused": "errors.UndoRefused",
    "Violation": "model.records.Violation",
    "Wait": "declare.workflow_context.Wait",
    "WaitOver": "errors.WaitOver",
    "WaitTimeout": "errors.WaitTimeout",
    "Watermark": "model.pipeline_records.WatermarkRow",
    "Webhook": "model.webhook_records.WebhookRow",
    "WebhookDelivery": "webhooks.delivery.WebhookDelivery",
    "WebhookTarget": "model.webhook_records.WebhookTargetRow",
    "Worker": "app.workers.Worker",
    "Workflow": "model.workflow_records.Workflow",
    "WorkflowCheck": "workflow.aio_check.WorkflowCheck",
    "WorkflowContext": "declare.workflow_context.WorkflowContext",
    "WorkflowDrift": "errors.WorkflowDrift",
    "WorkflowVersion": "model.workflow_records.VersionCount",
    "WorkflowWait": "model.workflow_records.WaitRow",
    "WrongToken": "errors.WrongToken",
    "shell": "worker.shell_task.shell",
    "split_by_count": "declare.pipeline.split_by_count",
}
"""The module and the name there of each."""


def __getattr__(name: str) -> object:
    if name == "errors":
        return _import_module("detent.errors")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, found = _HOMES[name].rpartition(".")
    value: object = getattr(_import_module(f"detent.{module}"), found)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
