//! The ports of annotations in memory.

use domain::{Annotation, AnnotationId};

use super::MemoryStore;
use crate::{
    AnnotationPage, AnnotationQuery, EditAnnotations, Invocation, ReadAnnotations, StoreResult,
};

impl ReadAnnotations for MemoryStore {
    async fn annotations(
        &self,
        query: &AnnotationQuery,
        _invocation: &Invocation,
    ) -> StoreResult<AnnotationPage> {
        let state = self.read()?;
        let is_behind = |it: &&Annotation| query.after.as_ref().is_none_or(|after| *after < it.id);
        let found = state.annotations.values().filter(is_behind).filter(|it| query.wants(it));
        let mut annotations: Vec<Annotation> = found.cloned().collect();
        let has_more = annotations.len() > query.limit;
        annotations.truncate(query.limit);
        Ok(AnnotationPage { annotations, has_more })
    }
}

impl EditAnnotations for MemoryStore {
    async fn put_annotation(
        &self,
        annotation: &Annotation,
        _invocation: &Invocation,
    ) -> StoreResult<()> {
        self.write()?.annotations.insert(annotation.id.clone(), annotation.clone());
        Ok(())
    }

    async fn delete_annotation(
        &self,
        id: &AnnotationId,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        Ok(self.write()?.annotations.remove(id).is_some())
    }
}
