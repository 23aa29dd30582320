"""What all admin pages share: they show and do not change, and they never count a big table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString

# Rows that can be reached by paging; what is older is found by filters and search.
ROWS_COUNTED = 10_000
# So that lists fit beside the menu and the filters.
LISTS_CSS = {"all": ("runners/lists.css",)}


if TYPE_CHECKING:  # generic in the stubs alone
    _Paginator = Paginator[Any]
    _ModelAdmin = admin.ModelAdmin[Any]
    _TabularInline = admin.TabularInline[Any, Any]
else:
    _Paginator, _ModelAdmin, _TabularInline = Paginator, admin.ModelAdmin, admin.TabularInline


class BoundedPaginator(_Paginator):
    """Counts no further than `ROWS_COUNTED`, so that a page costs the same at any size (FR-36)."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return min(self._counted(rows), ROWS_COUNTED)

    @cached_property
    def is_cut(self) -> bool:
        """Whether there are rows beyond the last page."""
        rows: Any = self.object_list
        return self._counted(rows) > ROWS_COUNTED

    def _counted(self, rows: QuerySet[Any]) -> int:
        if not hasattr(self, "_found"):
            # No order and one column: the database stops as soon as it has seen enough rows.
            self._found = rows.order_by().values("pk")[: ROWS_COUNTED + 1].count()
        return self._found


class ShownAdmin(_ModelAdmin):
    """Lists that cost a constant number of queries, and nothing to add, change or delete."""

    paginator = BoundedPaginator
    show_full_result_count = False
    list_per_page = 50
    list_max_show_all = 0
    sortable_by = ()  # by another column, the database would sort the whole table
    show_facets = admin.ShowFacets.NEVER  # each would be a count
    change_list_template = "runners/admin/change_list.html"

    class Media:
        css = LISTS_CSS

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ShownInline(_TabularInline):
    """Rows that belong to the one shown."""

    extra = 0
    can_delete = False
    show_change_link = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class GpuFilter(admin.SimpleListFilter):
    """The configured GPU types: asking the table for its values would read all of it."""

    title = "GPU"
    parameter_name = "gpu"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in settings.GPU_TYPES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(gpu=self.value()) if self.value() else queryset


def link(url: str, text: object) -> SafeString:
    return format_html('<a href="{}">{}</a>', url, text)
