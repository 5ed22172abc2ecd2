//! `Query`, `UpdateItem` and `DeleteItem` on annotations. Knows nothing of what they are about.

use domain::{Annotation, AnnotationId, Order, TimeRange};

use crate::DynamoStore;
use crate::attribute::to_sdk;
use crate::range::{Range, RangePage};
use crate::update::Update;
use table::item;
use table::keys::{self, Key};
use table::{
    AnnotationPage, AnnotationQuery, EditAnnotations, Invocation, ReadAnnotations, StoreResult,
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
