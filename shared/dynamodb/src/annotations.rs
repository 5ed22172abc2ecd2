//! `Query`, `UpdateItem` and `DeleteItem` on annotations. Knows nothing of what they are about.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::{Annotated, Annotation, AnnotationId, DeviceId, Order, TimeRange, Timestamp};

use crate::DynamoStore;
use crate::attribute::{SdkItem, to_sdk};
use crate::range::{Filter, Range, RangePage};
use crate::update::Update;
use table::item;
use table::item::attribute::ABOUT;
use table::keys::{self, Key};
use table::{
    AnnotationPage, AnnotationQuery, Belonging, EditAnnotations, Invocation, ItemKey,
    ReadAnnotations, StoreResult,
};

impl ReadAnnotations for DynamoStore {
    /// Consistent, because a person looks at what they have just set.
    async fn annotations(
        &self,
        query: &AnnotationQuery,
        invocation: &Invocation,
    ) -> StoreResult<AnnotationPage> {
        let after = query.after.clone().map(Key::Annotation);
        let range = Range {
            start: after.map(|after| to_sdk(item::key(&after))),
            limit: query.limit,
            ..all_in(query.range)
        };
        let page = self.range(range, |it| query.wants(it), |_| 0, invocation).await?;
        let RangePage { items: annotations, has_more } = page;
        Ok(AnnotationPage { annotations, has_more })
    }
}

impl EditAnnotations for DynamoStore {
    async fn put_annotation(
        &self,
        annotation: &Annotation,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        let mut update = Update::or_put(Key::Annotation(annotation.id.clone()));
        update.set_or_remove(item::from_annotation(annotation));
        update.send(self, invocation).await.map(drop)
    }

    async fn delete_annotation(
        &self,
        id: &AnnotationId,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        self.delete_found(&Key::Annotation(id.clone()), invocation).await
    }
}

impl DynamoStore {
    /// The annotations of a device, at most so many. All annotations are read for them: a device is seldom deleted.
    pub(super) async fn annotations_of(
        &self,
        device: &DeviceId,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Vec<Belonging>> {
        let about = Annotated::Device(device.clone()).to_string();
        let filter = Filter {
            expression: "#about = :about",
            names: &[("#about", ABOUT)],
            values: SdkItem::from([(":about".to_owned(), AttributeValue::S(about))]),
        };
        let always = TimeRange::new(Timestamp::MIN, Timestamp::MAX).expect("a range");
        let range = Range { limit, filter: Some(filter), ..all_in(always) };
        let page = self.range(range, |_: &Annotation| true, |_| 0, invocation).await?;
        let belonging = |it: Annotation| Belonging(vec![ItemKey::of(&Key::Annotation(it.id))]);
        Ok(page.items.into_iter().map(belonging).collect())
    }
}

/// The annotations that may overlap a range, one after the other.
fn all_in(range: TimeRange) -> Range {
    Range {
        index: None,
        partition: keys::ANNOTATIONS.to_owned(),
        between: keys::annotations_in(range),
        order: Order::Ascending,
        start: None,
        limit: 0,
        consistent: true,
        filter: None,
    }
}
