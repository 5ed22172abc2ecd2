"""Alerts by e-mail: a topic, a channel, rules, and how long a message takes. Judges nothing itself."""

import json
import time

from processes import until
from report import ok, same

FREEZER = {"name": "Freezer warm", "device": "deep-freezer", "metric": "temperature", "above": -12, "clear": -15}
CELLAR = {"name": "Cellar damp", "device": "cellar-probe", "metric": "humidity", "above": 70, "for": "60s"}
MAILBOX = "mailbox"


def begun(stack, tokens):
    """Saves a channel and rules; when that was."""
    admin = tokens["admin"]
    topic, mailbox = stack.outputs["AlertTopic"], mail(stack)
    attributes = mailbox.get_queue_attributes(QueueUrl=address(mailbox), AttributeNames=["QueueArn"])["Attributes"]
    allow = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": attributes["QueueArn"]}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    mailbox.set_queue_attributes(QueueUrl=address(mailbox), Attributes={"Policy": policy})
    stack.emulator.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=attributes["QueueArn"])
    channel = {"kind": "email", "name": "Mail", "topic_arn": topic}
    stack.call("PUT", "/channels/mail", channel, admin).expect(200)
    same("whether a channel tells its topic", False, topic in stack.call("GET", "/channels", token=tokens["read"]).text)
    post(stack, tokens, "deep-freezer", temperature=-18)
    post(stack, tokens, "cellar-probe", humidity=60)
    stack.call("PUT", "/alerts/freezer", FREEZER, admin).expect(200)
    stack.call("PUT", "/alerts/cellar", CELLAR, admin).expect(200)
    saved_at = time.monotonic()
    stack.call("POST", "/channels/mail/test", {}, admin).expect(200, 202)
    took = arrived(stack, "a test", "test")
    ok(f"a channel and two rules are saved; a test of the channel is in the mail after {took:.1f} s")
    return saved_at


def told(stack, tokens):
    """Each episode is told once when it begins and once when it ends."""
    saved_at = begun(stack, tokens)
    # In its first minute a rule is judged later.
    time.sleep(max(0, saved_at + 65 - time.monotonic()))
    took = {}
    post(stack, tokens, "deep-freezer", temperature=-5)
    took["a limit that is exceeded"] = arrived(stack, "the warm freezer", "Freezer warm", "-5")
    post(stack, tokens, "cellar-probe", humidity=80)
    post(stack, tokens, "deep-freezer", temperature=-18)
    took["its end"] = arrived(stack, "the cold freezer", "Freezer warm", "-18")
    took["the end of a breach's 60 s"] = arrived(stack, "the damp cellar", "Cellar damp", "80") + took["its end"] - 60
    history = stack.call("GET", "/alerts/freezer/history", token=tokens["read"]).expect(200)
    same("what was told of the freezer", ["fired", "recovered"], sorted(it["news"] for it in history["data"]))
    for rule in ("freezer", "cellar"):
        stack.call("DELETE", f"/alerts/{rule}", token=tokens["admin"]).expect(200, 204)
    # The next minute would send what is left.
    time.sleep(65)
    same("further mails", [], received(stack))
    mail(stack).delete_queue(QueueUrl=address(mail(stack)))
    figures = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in took.items())
    ok(f"one mail when the freezer warms and one when it cools; from reading to mail: {figures} (the stream's window of 10 s is not emulated)")


def post(stack, tokens, device, **metrics):
    stack.call("POST", "/readings", {"device_id": device} | metrics, tokens["write"]).expect(201)


def mail(stack):
    return stack.emulator.client("sqs")


def address(mailbox):
    return mailbox.create_queue(QueueName=MAILBOX)["QueueUrl"]


def arrived(stack, what, *words):
    """Waits for one mail with these words; after how many seconds it came."""
    started = time.monotonic()
    mails = until(f"{what} is in the mail", lambda: received(stack))
    took = time.monotonic() - started
    same(f"the mails about {what}", 1, len(mails))
    same(f"the words about {what} that {mails} lacks", [], [it for it in words if it not in " ".join(mails)])
    return took


def received(stack):
    """The texts of the mails that have come; they are gone then."""
    mailbox, texts = mail(stack), []
    while messages := mailbox.receive_message(QueueUrl=address(mailbox), MaxNumberOfMessages=10).get("Messages"):
        for message in messages:
            mailbox.delete_message(QueueUrl=address(mailbox), ReceiptHandle=message["ReceiptHandle"])
            told = json.loads(message["Body"])
            texts.append(f"{told['Subject']}\n{told['Message']}")
    return texts
