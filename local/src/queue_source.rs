//! The queues that `template.yaml` connects with functions. Delivers nothing itself.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value};

use crate::template::{FunctionEvent, Template};

/// How a queue's messages are delivered to one function.
#[derive(Debug)]
pub(crate) struct QueueSource {
    /// The queue's logical id.
    pub(crate) queue: String,
    /// The function's logical id.
    pub(crate) function: String,
    /// The time-out of the function.
    pub(crate) timeout: Duration,
    /// The maximum number of messages in an invocation.
    pub(crate) batch_size: usize,
    /// The maximum pause before a failed message is delivered again.
    pub(crate) visibility_timeout: Duration,
    /// The number of times that a message is delivered before it is given up.
    pub(crate) max_receives: u32,
}

impl QueueSource {
    pub(crate) fn from_template(template: &Template) -> anyhow::Result<Vec<Self>> {
        let resources = template.resources(&[])?;
        let events = template.function_events(&["SQS"])?.into_iter();
        events
            .filter(|event| event.properties["Enabled"] != false)
            .map(|event| {
                let name = format!("{}{}", event.function, event.name);
                Self::new(event, &resources).with_context(|| format!("the event source {name}"))
            })
            .collect()
    }

    fn new(event: FunctionEvent, resources: &Map<String, Value>) -> anyhow::Result<Self> {
        let FunctionEvent { function, timeout, properties, .. } = event;
        ensure!(
            properties["FunctionResponseTypes"][0] == "ReportBatchItemFailures",
            "FunctionResponseTypes is not [ReportBatchItemFailures]"
        );
        let queue = properties["Queue"]["Fn::GetAtt"][0].as_str();
        let queue = queue.context("Queue is not the Arn of a resource")?.to_owned();
        let resource = resources.get(&queue).with_context(|| format!("there is no {queue}"))?;
        let of_queue = &resource["Properties"];
        let number = |value: &Value, default: u64, name: &str| match value {
            Value::Null => Ok(default),
            value => value.as_u64().with_context(|| format!("{name} is not a number")),
        };
        let receives = of_queue["RedrivePolicy"]["maxReceiveCount"].as_u64();
        let receives = receives.with_context(|| format!("{queue} has no maxReceiveCount"))?;
        let visibility = number(&of_queue["VisibilityTimeout"], 30, "VisibilityTimeout")?;
        Ok(Self {
            queue,
            function,
            timeout,
            batch_size: usize::try_from(number(&properties["BatchSize"], 10, "BatchSize")?)?.max(1),
            visibility_timeout: Duration::from_secs(visibility),
            max_receives: u32::try_from(receives)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "
Resources:
  Work:
    Type: AWS::SQS::Queue
    Properties: {VisibilityTimeout: 60, RedrivePolicy: {maxReceiveCount: 3}}
  Function:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 10
      Events:
        Queued:
          Type: SQS
          Properties:
            Queue: !GetAtt Work.Arn
            BatchSize: 5
            FunctionResponseTypes: [ReportBatchItemFailures]
";

    #[test]
    fn a_source_is_read_with_its_queue() {
        let sources = QueueSource::from_template(&Template::parse(TEMPLATE).unwrap()).unwrap();
        let [source] = &sources[..] else { panic!("{sources:?}") };
        assert_eq!((&*source.queue, &*source.function), ("Work", "Function"));
        assert_eq!((source.batch_size, source.max_receives), (5, 3));
        assert_eq!(source.timeout, Duration::from_secs(10));
        assert_eq!(source.visibility_timeout, Duration::from_mins(1));
    }

    #[test]
    fn the_template_s_queue_is_understood() {
        let sources = QueueSource::from_template(Template::own().unwrap()).unwrap();
        let [source] = &sources[..] else { panic!("{sources:?}") };
        assert_eq!((&*source.queue, &*source.function), ("RollupQueue", "RollupFunction"));
        assert_eq!(source.visibility_timeout, source.timeout * 6);
    }

    #[test]
    fn what_cannot_be_delivered_here_is_named() {
        for (text, other, why) in [
            ("[ReportBatchItemFailures]", "[]", "FunctionResponseTypes"),
            ("!GetAtt Work.Arn", "!GetAtt Rest.Arn", "there is no Rest"),
            ("maxReceiveCount", "deadLetterTargetArn", "Work has no maxReceiveCount"),
            ("BatchSize: 5", "BatchSize: many", "BatchSize is not a number"),
        ] {
            let template = Template::parse(&TEMPLATE.replace(text, other)).unwrap();
            let error = QueueSource::from_template(&template).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains("FunctionQueued") && error.contains(why), "{error}");
        }
    }
}
