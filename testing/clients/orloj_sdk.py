"""Drives Orloj's Python SDK against the server at $OSTLER_SERVER with the token $OSTLER_TOKEN, which must be fresh: what the SDK reads
must be what was declared and done. Ends with one line of figures."""

import os
import sys

# This file has the SDK's own name, and its folder comes first.
sys.path.pop(0)

import asyncio  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
import traceback  # noqa: E402

import orloj_sdk  # noqa: E402
from orloj_sdk._errors import OrlojAPIError  # noqa: E402
from orloj_sdk.client import AsyncOrlojClient, OrlojClient  # noqa: E402
from orloj_sdk.models.agent import Agent  # noqa: E402
from orloj_sdk.models.agent_system import AgentSystem  # noqa: E402
from orloj_sdk.models.eval import EvalDataset, EvalRun, EvalSampleAnnotation  # noqa: E402
from orloj_sdk.models.model_endpoint import ModelEndpoint  # noqa: E402
from orloj_sdk.models.task import Task  # noqa: E402
from orloj_sdk.models.task_webhook import TaskWebhook  # noqa: E402

SERVER, TOKEN = os.environ["OSTLER_SERVER"], os.environ["OSTLER_TOKEN"]
LISTS = """agents agent_systems model_endpoints tools secrets sealed_secrets memories context_adapters eval_datasets eval_runs
agent_policies agent_roles tool_permissions tool_approvals task_approvals tasks task_schedules task_webhooks workers
mcp_servers""".split()

CASES = []
calls = 0


def case(function):
    CASES.append(function)
    return function


def counted(event):
    global calls
    calls += 1


def client(token=TOKEN, **more):
    made = OrlojClient(base_url=SERVER, api_token=token, **more)
    made._client.event_hooks = {"request": [counted]}
    return made


def expect(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")


def refused(code, function, *arguments, **named):
    """With this status, and in words that name what is refused."""
    try:
        function(*arguments, **named)
    except OrlojAPIError as error:
        expect(error.status_code, code, error.message)
        return error.message
    raise AssertionError(f"nothing was refused, expected {code}")


def agent(name, namespace="default"):
    # The SDK writes out the default namespace, and two that differ are refused.
    metadata = {"name": name, "namespace": namespace}
    return Agent.model_validate({"metadata": metadata, "spec": {"model_ref": "mock", "prompt": "Help."}})


def prepare(orloj):
    orloj.model_endpoints.create(
        ModelEndpoint.model_validate(
            {"metadata": {"name": "mock"}, "spec": {"provider": "mock", "default_model": "mock"}}
        )
    )
    for name in ("first", "second"):
        orloj.agents.create(agent(name))
    system = {"metadata": {"name": "desk"}, "spec": {"agents": ["first", "second"]}}
    orloj.agent_systems.create(AgentSystem.model_validate(system))


@case
def a_system_does_a_task(orloj):
    done = orloj.tasks.run(name="job", system="desk", input={"topic": "tea"}, poll_interval=0.1, timeout=60)
    expect(done.status.phase, "Succeeded")
    expect(done.spec.input["topic"], "tea")
    assert done.status.output, done
    expect(orloj.tasks.get("job").metadata.name, "job")
    messages = orloj.tasks.get_messages("job")
    assert messages.total == len(messages.messages) >= 2, messages
    expect(len(orloj.tasks.get_messages("job", max_results=1).messages), 1)
    expect(orloj.tasks.get_metrics("job").totals.succeeded, messages.total)
    for logs in (orloj.tasks.get_logs("job"), orloj.agents.get_logs("first")):
        line = logs.logs[0]
        assert line["timestamp"] and "task accepted" in line["message"], line


@case
def what_is_otherwise_is_told_to_a_retry(orloj):
    again = orloj.tasks.retry("job", overrides={"topic": "coffee"})
    expect(again.spec.input["topic"], "coffee")
    orloj.tasks.wait(again.metadata.name, timeout=60, poll_interval=0.1)
    expect(orloj.tasks.retry("job").spec.input["topic"], "tea")


@case
def a_list_goes_on_behind_its_first_page(orloj):
    names = {f"many-{number:03}" for number in range(120)}
    for name in sorted(names):
        orloj.agents.create(agent(name, "many"), namespace="many")
    expect({one.metadata.name for one in orloj.agents.list_all(namespace="many")}, names)


@case
def a_list_of_every_kind_is_read(orloj):
    for kind in LISTS:
        list(getattr(orloj, kind).list_all())


@case
def comparisons_are_text(orloj):
    condition = {"output_json_path": "$.score", "greater_than": "0.90"}
    graph = {"first": {"edges": [{"to": "second", "condition": condition}]}}
    spec = {"agents": ["first", "second"], "graph": graph}
    orloj.agent_systems.create(AgentSystem.model_validate({"metadata": {"name": "choosy"}, "spec": spec}))
    found = next(one for one in orloj.agent_systems.list().items if one.metadata.name == "choosy")
    expect(found.spec.graph["first"].edges[0].condition.greater_than, "0.90")
    sample = {"name": "one", "input": {"q": "x"}, "expected": {"output_json_path": "$.a", "less_than": "3"}}
    orloj.eval_datasets.create(
        EvalDataset.model_validate({"metadata": {"name": "questions"}, "spec": {"samples": [sample]}})
    )
    expect(orloj.eval_datasets.list().items[0].spec.samples[0].expected.less_than, "3")


@case
def a_watch_outlives_a_delete(orloj):
    seen, fault, begun = [], [], threading.Event()

    def follow():
        try:
            # Without a timeout of its own the SDK can't open a stream.
            with client(timeout=60.0).agents.watch(namespace="watched") as stream:
                for event in stream:
                    seen.append((event.type, event.resource.metadata.name))
                    begun.set()
                    if event.resource.metadata.name == "last":
                        return
        except Exception:  # noqa: BLE001 - whatever the SDK throws is a finding
            fault.append(traceback.format_exc(limit=-4))

    orloj.agents.create(agent("here", "watched"), namespace="watched")
    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    assert begun.wait(30), fault
    orloj.agents.delete("here", namespace="watched")
    orloj.agents.create(agent("last", "watched"), namespace="watched")
    follower.join(30)
    assert not fault, fault
    expect(seen, [("added", "here"), ("deleted", "here"), ("added", "last")])


@case
def tokens_users_and_namespaces_are_listed(orloj):
    made = orloj.auth.create_token("ci", "reader")
    expect(client(made.token).auth.whoami().role, "reader")
    expect([one.name for one in orloj.auth.list_tokens()], ["ci"])
    orloj.auth.create_user("ada", "correct horse battery", "writer")
    expect([one["username"] for one in orloj.auth.list_users()], ["ada"])
    assert "default" in orloj.auth.list_namespaces()
    own = client(None).auth.cli_token("ada", "correct horse battery")
    expect((own.username, own.role), ("ada", "writer"))
    expect(client(own.token).auth.whoami().username, "ada")
    refused(401, client(None).auth.cli_token, "ada", "another long password")
    orloj.auth.delete_token("ci")
    refused(401, client(made.token).auth.list_namespaces)


@case
def changes_say_which_version_they_are_made_to(orloj):
    kept = orloj.agents.create(agent("changing"))
    kept.spec.prompt = "Help more."
    changed = orloj.agents.update("changing", kept)
    expect((kept.metadata.resource_version, changed.metadata.resource_version), ("1", "2"))
    refused(409, orloj.agents.update, "changing", kept)
    changed.metadata.name = "changed"
    expect(orloj.agents.update("changing", changed).metadata.resource_version, "3")
    orloj.agents.delete("changed")
    refused(404, orloj.agents.get, "changed")


@case
def what_is_not_built_says_so_by_name(orloj):
    run = {"metadata": {"name": "er"}, "spec": {"dataset_ref": "questions", "system": "desk"}}
    orloj.eval_runs.create(EvalRun.model_validate(run))
    call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}}
    for function, arguments in [
        (orloj.eval_runs.start, ["er"]),
        (orloj.eval_runs.compare, [["er", "other"]]),
        (orloj.eval_runs.annotate_sample, ["er", "one", EvalSampleAnnotation(score=1.0)]),
        (orloj.eval_runs.import_annotations, ["er", []]),
        (orloj.a2a.invoke, [call]),
        (orloj.a2a.invoke_agent, ["first", call]),
        (orloj.a2a.invoke_system, ["desk", call]),
        (orloj.a2a.get_agent_card, ["first"]),
        (orloj.a2a.get_system_card, ["desk"]),
        (orloj.a2a.get_default_card, []),
    ]:
        assert "not_available" in refused(422, function, *arguments), function
    hook = {"metadata": {"name": "hook"}, "spec": {"task_ref": "t", "auth": {"secret_ref": "s"}}}
    orloj.task_webhooks.create(TaskWebhook.model_validate(hook))
    # The SDK leaves out the `status` that Orloj's own description wants around it.
    said = {"status": {"phase": "Ready"}}
    orloj._request("PUT", "/v1/task-webhooks/hook/status", json=said, headers={"If-Match": "*"})
    found = orloj.task_webhooks.get("hook").status
    assert found.phase == "Error" and "not available" in found.last_error, found


@case
def the_asynchronous_one_reads_the_same(orloj):
    async def ask():
        async with AsyncOrlojClient(base_url=SERVER, api_token=TOKEN) as other:

            async def count(request):
                counted(request)

            other._client.event_hooks = {"request": [count]}
            done = await other.tasks.run(name="later", system="desk", input={"topic": "tea"}, poll_interval=0.1)
            expect(done.status.phase, "Succeeded")
            assert (await other.tasks.get_logs("later")).logs
            again = await other.tasks.retry("later", overrides={"topic": "milk"})
            expect(again.spec.input["topic"], "milk")
            names = [one.metadata.name async for one in other.agents.list_all(namespace="many")]
            expect(len(names), 120)

    asyncio.run(ask())


def main():
    began, failed = time.monotonic(), 0
    with client() as orloj:
        prepare(orloj)
        for one in CASES:
            try:
                one(orloj)
            except Exception:  # noqa: BLE001 - whatever the SDK throws is a finding
                failed += 1
                print(f"FAILED {one.__name__}\n{traceback.format_exc(limit=-4)}", flush=True)
    print(f"orloj-sdk {orloj_sdk.__version__}: {len(CASES)} cases")
    print(f"clients: {calls} calls, {failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
