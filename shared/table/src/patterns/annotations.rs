//! Annotations: stored by time, found by a range, replaced and deleted. Knows nothing of their subjects.

use domain::{Annotated, Annotation, AnnotationId, DeviceId, TimeRange, Timestamp};
use ports::port;

use crate::db::{Db, ItemQuery, WriteOutcome, delete, is, replace_all, upsert};
use crate::item::attribute::ABOUT;
use crate::item::{self, Attribute};
use crate::keys::{self, Key};
use crate::{AnnotationQuery, Belonging, ItemKey, Page, Patterns, StoreResult};

/// The annotations of a range.
#[port(ReadAnnotations, Query(Annotations))]
impl<D: Db> Patterns<'_, D> {
    /// A page of annotations, sorted by time, as they are this moment, because a person looks at an annotation just
    /// after writing it.
    pub async fn annotations(self, query: &AnnotationQuery) -> StoreResult<Page<Annotation>> {
        let after = query.after.clone().map(Key::Annotation);
        let start = after.map(|after| item::key(&after));
        let range = ItemQuery { start, ..all_in(query.range) };
        let wants = |annotation: &Annotation| query.wants(annotation);
        self.range(range, query.limit, wants, |_| 0).await
    }
}

/// A person's edits of annotations. A repeat changes nothing.
#[port(EditAnnotations, UpdateItem(Annotations), DeleteItem(Annotations))]
impl<D: Db> Patterns<'_, D> {
    /// Stores an annotation. It replaces a stored one with the same id.
    pub async fn put_annotation(self, annotation: &Annotation) -> StoreResult<()> {
        let write = upsert(&Key::Annotation(annotation.id.clone())).with(replace_all(annotation));
        self.write(write).await.map(drop)
    }

    /// Deletes an annotation; returns whether there was one.
    pub async fn delete_annotation(self, id: &AnnotationId) -> StoreResult<bool> {
        let deleted = self.write(delete(&Key::Annotation(id.clone()))).await?;
        Ok(matches!(deleted, WriteOutcome::Done(Some(_))))
    }

    /// At most `limit` annotations about a device. All annotations are read to find them; this is rare, because devices
    /// are seldom deleted.
    pub(super) async fn annotations_of(
        self,
        device: &DeviceId,
        limit: usize,
    ) -> StoreResult<Vec<Belonging>> {
        let about = Attribute::text(&Annotated::Device(device.clone()));
        let always = TimeRange::new(Timestamp::MIN, Timestamp::MAX).expect("a range");
        let range = ItemQuery { filter: vec![is(ABOUT, about)], ..all_in(always) };
        let page = self.range(range, limit, |_: &Annotation| true, |_| 0).await?;
        let belonging = |found: Annotation| {
            let key = Key::Annotation(found.id);
            Belonging(vec![ItemKey::of(&key)])
        };
        Ok(page.items.into_iter().map(belonging).collect())
    }
}

/// The query for annotations that may overlap a range.
fn all_in(range: TimeRange) -> ItemQuery {
    ItemQuery::of(keys::ANNOTATIONS).between(keys::annotations_in(range))
}
