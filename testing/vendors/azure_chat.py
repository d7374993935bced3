"""The openai SDK's Azure client against the wire of deployments, and its plain client against /openai/v1."""

import openai

import openai_chat
from suite import ROOT, TEXT, case, plan, raises, same, say, table

VENDOR = "azure"


def client():
    return openai.AzureOpenAI(
        api_key="key", azure_endpoint=ROOT, api_version="2024-10-21", max_retries=0, timeout=30
    )


CHECKS = (
    openai_chat.check_text,
    openai_chat.check_tools,
    openai_chat.check_usage,
    openai_chat.check_structured,
    openai_chat.check_image,
)


@table(VENDOR, [(check,) for check in CHECKS])
def conversation(check):
    check(client())


@case(VENDOR)
def without_versions():
    plain = openai.OpenAI(
        api_key="key", base_url=f"{ROOT}/openai/v1", default_headers={"api-key": "key"}, max_retries=0
    )
    openai_chat.check_text(plain)
    same(plain.responses.create(model="gpt", input=plan(say(TEXT))).output_text, TEXT)


@case(VENDOR)
def verdicts_of_the_filter():
    read = client().chat.completions.create(**openai_chat.ask(say("fine")))
    same(read.choices[0].content_filter_results["violence"], {"filtered": False, "severity": "safe"})
    same(read.prompt_filter_results[0]["prompt_index"], 0)
    filtered = client().chat.completions.create(**openai_chat.ask(say("some words", "fault=content-filter")))
    same(filtered.choices[0].finish_reason, "content_filter")
    same(filtered.choices[0].content_filter_results["violence"]["filtered"], True)


@case(VENDOR)
def blocked_prompt():
    read = raises(
        openai.BadRequestError,
        lambda: client().chat.completions.create(**openai_chat.ask(say("x", "fault=blocked"))),
    )
    same((read.code, read.body["innererror"]["code"]), ("content_filter", "ResponsibleAIPolicyViolation"))


@table(
    VENDOR,
    [
        ("401", openai.AuthenticationError, 401, "401"),
        ("429", openai.RateLimitError, 429, "429"),
        ("429-ms", openai.RateLimitError, 429, "429"),
        ("quota", openai.RateLimitError, 429, "insufficient_quota"),
        ("500", openai.InternalServerError, 500, "InternalServerError"),
        ("503", openai.InternalServerError, 503, "ServiceUnavailable"),
        ("529", openai.InternalServerError, 503, "ServiceUnavailable"),
        ("context-length", openai.BadRequestError, 400, "context_length_exceeded"),
    ],
)
def error(fault, kind, status, code):
    openai_chat.check_error(client(), fault, kind, status, code)


@case(VENDOR)
def no_version():
    versionless = openai.OpenAI(api_key="key", base_url=f"{ROOT}/openai/deployments/gpt", max_retries=0)
    raises(openai.NotFoundError, lambda: versionless.chat.completions.create(**openai_chat.ask(say("x"))))


@table(VENDOR, [("cut-text",), ("cut-tool",), ("close",)])
def cut(fault):
    openai_chat.check_cut(client(), fault)
