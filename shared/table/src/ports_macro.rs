//! The macro that declares a port once, with its permissions and its only implementation. Declares no port.

/// Declares ports. For each port it makes three things: the trait with its permissions, an implementation for every
/// [`Db`](crate::db::Db), and methods on a [`Session`](crate::Session) whose store has the port. The implementation
/// calls the method of the same name of `Patterns`.
///
/// Methods under `knows` answer without a request to the table.
///
/// Code that has only a port cannot call another port or an operation of `Db`, because `Db` is not a supertrait of a
/// port.
macro_rules! ports {
    ($(
        $(#[$about:meta])*
        $port:ident [$(($action:ident, $target:ident)),+ $(,)?]
        $(knows { $(#[$about_fact:meta])* fn $fact:ident() -> bool; })?
        {
            $(
                $(#[$about_function:meta])*
                fn $function:ident($($argument:ident: $type:ty),* $(,)?) -> $output:ty;
            )+
        }
    )+) => { $(
        $(#[$about])*
        pub trait $port: Send + Sync {
            /// The permissions that the port needs.
            const PERMISSIONS: &'static [$crate::Permission] =
                &[$(($crate::Action::$action, $crate::Target::$target)),+];

            $(
                $(#[$about_function])*
                fn $function(
                    &self,
                    $($argument: $type,)*
                    invocation: &$crate::Invocation,
                ) -> impl ::std::future::Future<Output = $output> + Send;
            )+

            $(
                $(#[$about_fact])*
                fn $fact(&self) -> bool;
            )?
        }

        impl<D: $crate::db::Db> $port for D {
            $(
                async fn $function(
                    &self,
                    $($argument: $type,)*
                    invocation: &$crate::Invocation,
                ) -> $output {
                    $crate::patterns::Patterns::new(self, invocation).$function($($argument),*).await
                }
            )+

            $(
                fn $fact(&self) -> bool {
                    $crate::patterns::$fact(self)
                }
            )?
        }

        impl<S: $port> $crate::Session<'_, S> {
            $(
                $(#[$about_function])*
                pub fn $function(
                    self,
                    $($argument: $type,)*
                ) -> impl ::std::future::Future<Output = $output> + Send {
                    self.store.$function($($argument,)* self.invocation)
                }
            )+

            $(
                $(#[$about_fact])*
                pub fn $fact(self) -> bool {
                    self.store.$fact()
                }
            )?
        }
    )+ };
}

pub(crate) use ports;
