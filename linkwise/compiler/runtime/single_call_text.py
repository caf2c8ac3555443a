"""LLVM text of the native function that ``single_call`` puts in front of ufuncs."""

from __future__ import annotations

MAX_ARRAYS = 32  # maximum number of inputs and outputs; kernels with more always use the general function
C_CONTIGUOUS_AND_ALIGNED = 0x0101  # NumPy's array flags
TO_WRITE_TO = C_CONTIGUOUS_AND_ALIGNED | 0x0400

SOURCE = f"""
%Array = type {{ i64, ptr, ptr, i32, ptr, ptr, ptr, ptr, i32 }}
%Shape = type {{ i64, ptr }}
%Kernel = type {{ ptr, ptr, i64, i64, ptr, ptr, i64, ptr, [{MAX_ARRAYS} x %Shape] }}
@linkwise_single_call_enabled = external global i8
@_Py_NoneStruct = external global i8
@out = private constant [4 x i8] c"out\\00"

; PyObject *linkwise_single_call(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *keywords)
define ptr @linkwise_single_call(ptr %self, ptr %given, i64 %count, ptr %keywords) nounwind {{
entry:
  %data = alloca [{MAX_ARRAYS} x ptr]     ; where the loop finds its arrays: inputs, then outputs
  %results = alloca [{MAX_ARRAYS} x ptr]  ; the output arrays as objects
  %states = alloca i64                     ; how many there are, and whether in rows: the same for all inputs
  %in_rows = alloca i64
  %row_sizes = alloca [{MAX_ARRAYS} x i64]
  %result_array = alloca ptr               ; the one that is given for the result, if any
  store i64 1, ptr %states
  store i64 0, ptr %in_rows
  store ptr null, ptr %result_array
  %kernel.at = getelementptr %Array, ptr %self, i64 0, i32 2
  %kernel = load ptr, ptr %kernel.at
  %general.at = getelementptr %Kernel, ptr %kernel, i64 0, i32 1
  %general = load ptr, ptr %general.at
  %inputs.at = getelementptr %Kernel, ptr %kernel, i64 0, i32 2
  %inputs = load i64, ptr %inputs.at
  %outputs.at = getelementptr %Kernel, ptr %kernel, i64 0, i32 3
  %outputs = load i64, ptr %outputs.at
  %array_type.at = getelementptr %Kernel, ptr %kernel, i64 0, i32 4
  %array_type = load ptr, ptr %array_type.at
  %dtype.at = getelementptr %Kernel, ptr %kernel, i64 0, i32 5
  %dtype = load ptr, ptr %dtype.at
  %complete = icmp eq i64 %count, %inputs
  %enabled = load i8, ptr @linkwise_single_call_enabled
  %allowed = icmp ne i8 %enabled, 0
  %promising = and i1 %complete, %allowed
  br i1 %promising, label %keyword, label %anything

; One array for the only result may be given, out=...
keyword:
  %plain = icmp eq ptr %keywords, null
  br i1 %plain, label %input.begin, label %keyword.only
keyword.only:
  %keyword.count = call i64 @PyTuple_Size(ptr %keywords)
  %one_keyword = icmp eq i64 %keyword.count, 1
  %one_output = icmp eq i64 %outputs, 1
  %one_of_each = and i1 %one_keyword, %one_output
  br i1 %one_of_each, label %keyword.name, label %anything
keyword.name:
  %keyword.object = call ptr @PyTuple_GetItem(ptr %keywords, i64 0)
  %keyword.order = call i32 @PyUnicode_CompareWithASCIIString(ptr %keyword.object, ptr @out)
  %is_out = icmp eq i32 %keyword.order, 0
  br i1 %is_out, label %keyword.value, label %anything
keyword.value:
  %value.at = getelementptr ptr, ptr %given, i64 %count
  %value = load ptr, ptr %value.at
  %value.is_none = icmp eq ptr %value, @_Py_NoneStruct  ; as if it were not given
  %value.array = select i1 %value.is_none, ptr null, ptr %value
  store ptr %value.array, ptr %result_array
  br label %input.begin
input.begin:
  br label %input

; Is each input a plain array of this dtype, contiguous, of this shape, or of a few of it in rows?
input:
  %i = phi i64 [ 0, %input.begin ], [ %i.next, %input.fits ]
  %array.at = getelementptr ptr, ptr %given, i64 %i
  %array = load ptr, ptr %array.at
  %type.at = getelementptr %Array, ptr %array, i64 0, i32 1
  %type = load ptr, ptr %type.at
  %is_array = icmp eq ptr %type, %array_type
  br i1 %is_array, label %input.array, label %anything
input.array:
  %rank.at = getelementptr %Array, ptr %array, i64 0, i32 3
  %rank.short = load i32, ptr %rank.at
  %rank = sext i32 %rank.short to i64
  %core_rank.at = getelementptr %Kernel, ptr %kernel, i64 0, i32 8, i64 %i, i32 0
  %core_rank = load i64, ptr %core_rank.at
  %rows = sub i64 %rank, %core_rank
  %rank.fits = icmp ule i64 %rows, 1
  %array_dtype.at = getelementptr %Array, ptr %array, i64 0, i32 7
  %array_dtype = load ptr, ptr %array_dtype.at
  %dtype.fits = icmp eq ptr %array_dtype, %dtype
  %flags.at = getelementptr %Array, ptr %array, i64 0, i32 8
  %flags = load i32, ptr %flags.at
  %layout = and i32 %flags, {C_CONTIGUOUS_AND_ALIGNED}
  %layout.fits = icmp eq i32 %layout, {C_CONTIGUOUS_AND_ALIGNED}
  %fits.1 = and i1 %rank.fits, %dtype.fits
  %fits.2 = and i1 %fits.1, %layout.fits
  %sizes.at = getelementptr %Array, ptr %array, i64 0, i32 4
  %sizes = load ptr, ptr %sizes.at
  %core_sizes.at = getelementptr %Kernel, ptr %kernel, i64 0, i32 8, i64 %i, i32 1
  %core_sizes = load ptr, ptr %core_sizes.at
  br i1 %fits.2, label %batch, label %anything
batch:
  %has_rows = icmp eq i64 %rows, 1
  br i1 %has_rows, label %batch.rows, label %batch.known
batch.rows:
  %row_count = load i64, ptr %sizes
  br label %batch.known
batch.known:
  %batch_size = phi i64 [ 1, %batch ], [ %row_count, %batch.rows ]
  %first = icmp eq i64 %i, 0
  br i1 %first, label %batch.first, label %batch.same
batch.first:
  store i64 %batch_size, ptr %states
  store i64 %rows, ptr %in_rows
  %few.at = getelementptr %Kernel, ptr %kernel, i64 0, i32 6
  %few = load i64, ptr %few.at
  %before = sub i64 %batch_size, 1  ; no states at all are left to NumPy as well
  %is_few = icmp ult i64 %before, %few
  br i1 %is_few, label %axis, label %anything
batch.same:
  %states.first = load i64, ptr %states
  %rows.first = load i64, ptr %in_rows
  %same_states = icmp eq i64 %batch_size, %states.first
  %same_rows = icmp eq i64 %rows, %rows.first
  %same = and i1 %same_states, %same_rows
  br i1 %same, label %axis, label %anything
axis:
  %j = phi i64 [ 0, %batch.first ], [ 0, %batch.same ], [ %j.next, %axis.size ]
  %axes_left = icmp slt i64 %j, %core_rank
  br i1 %axes_left, label %axis.size, label %input.fits
axis.size:
  %axis_place = add i64 %j, %rows
  %size.at = getelementptr i64, ptr %sizes, i64 %axis_place
  %size = load i64, ptr %size.at
  %core_size.at = getelementptr i64, ptr %core_sizes, i64 %j
  %core_size = load i64, ptr %core_size.at
  %size.fits = icmp eq i64 %size, %core_size
  %j.next = add i64 %j, 1
  br i1 %size.fits, label %axis, label %anything
input.fits:
  %input_data.at = getelementptr %Array, ptr %array, i64 0, i32 2
  %input_data = load ptr, ptr %input_data.at
  %input_slot = getelementptr ptr, ptr %data, i64 %i
  store ptr %input_data, ptr %input_slot
  %i.next = add i64 %i, 1
  %inputs_left = icmp slt i64 %i.next, %inputs
  br i1 %inputs_left, label %input, label %outputs.begin

; New arrays for the outputs.
outputs.begin:
  %state_count = load i64, ptr %states
  %row_axes = load i64, ptr %in_rows
  store i64 %state_count, ptr %row_sizes
  %steps.at = getelementptr %Kernel, ptr %kernel, i64 0, i32 7
  %steps = load ptr, ptr %steps.at
  %its_array = load ptr, ptr %result_array
  %needs_new = icmp eq ptr %its_array, null
  br i1 %needs_new, label %output, label %given.begin

; Is the given one as a new one would be, may it be written to, and is it apart from all inputs?
given.begin:
  %given.type.at = getelementptr %Array, ptr %its_array, i64 0, i32 1
  %given.type = load ptr, ptr %given.type.at
  %given.is_array = icmp eq ptr %given.type, %array_type
  br i1 %given.is_array, label %given.array, label %anything
given.array:
  %given.rank.at = getelementptr %Array, ptr %its_array, i64 0, i32 3
  %given.rank.short = load i32, ptr %given.rank.at
  %given.rank = sext i32 %given.rank.short to i64
  %given.core.at = getelementptr %Kernel, ptr %kernel, i64 0, i32 8, i64 %inputs, i32 0
  %given.core = load i64, ptr %given.core.at
  %given.wanted = add i64 %given.core, %row_axes
  %given.rank.fits = icmp eq i64 %given.rank, %given.wanted
  %given.dtype.at = getelementptr %Array, ptr %its_array, i64 0, i32 7
  %given.dtype = load ptr, ptr %given.dtype.at
  %given.dtype.fits = icmp eq ptr %given.dtype, %dtype
  %given.flags.at = getelementptr %Array, ptr %its_array, i64 0, i32 8
  %given.flags = load i32, ptr %given.flags.at
  %given.layout = and i32 %given.flags, {TO_WRITE_TO}
  %given.layout.fits = icmp eq i32 %given.layout, {TO_WRITE_TO}
  %given.fits.1 = and i1 %given.rank.fits, %given.dtype.fits
  %given.fits.2 = and i1 %given.fits.1, %given.layout.fits
  %given.sizes.at = getelementptr %Array, ptr %its_array, i64 0, i32 4
  %given.sizes = load ptr, ptr %given.sizes.at
  %given.core_sizes.at = getelementptr %Kernel, ptr %kernel, i64 0, i32 8, i64 %inputs, i32 1
  %given.core_sizes = load ptr, ptr %given.core_sizes.at
  br i1 %given.fits.2, label %given.rows, label %anything
given.rows:
  %given.single = icmp eq i64 %row_axes, 0
  br i1 %given.single, label %given.axes, label %given.row_count
given.row_count:
  %given.states = load i64, ptr %given.sizes
  %given.as_many = icmp eq i64 %given.states, %state_count
  br i1 %given.as_many, label %given.axes, label %anything
given.axes:
  br label %given.axis
given.axis:
  %g = phi i64 [ 0, %given.axes ], [ %g.next, %given.size ]
  %given.axes_left = icmp slt i64 %g, %given.core
  br i1 %given.axes_left, label %given.size, label %given.place
given.size:
  %given.axis_place = add i64 %g, %row_axes
  %given.size.at = getelementptr i64, ptr %given.sizes, i64 %given.axis_place
  %given.size.value = load i64, ptr %given.size.at
  %given.core_size.at = getelementptr i64, ptr %given.core_sizes, i64 %g
  %given.core_size = load i64, ptr %given.core_size.at
  %given.size.fits = icmp eq i64 %given.size.value, %given.core_size
  %g.next = add i64 %g, 1
  br i1 %given.size.fits, label %given.axis, label %anything
given.place:
  %given.data.at = getelementptr %Array, ptr %its_array, i64 0, i32 2
  %given.data = load ptr, ptr %given.data.at
  %given.step.at = getelementptr i64, ptr %steps, i64 %inputs
  %given.step = load i64, ptr %given.step.at
  %given.bytes = mul i64 %given.step, %state_count
  %given.end = getelementptr i8, ptr %given.data, i64 %given.bytes
  br label %given.beside
given.beside:
  %b = phi i64 [ 0, %given.place ], [ %b.next, %given.compared ]
  %given.compare = icmp slt i64 %b, %inputs
  br i1 %given.compare, label %given.compared, label %given.taken
given.compared:
  %beside.slot = getelementptr ptr, ptr %data, i64 %b
  %beside.data = load ptr, ptr %beside.slot
  %beside.step.at = getelementptr i64, ptr %steps, i64 %b
  %beside.step = load i64, ptr %beside.step.at
  %beside.bytes = mul i64 %beside.step, %state_count
  %beside.end = getelementptr i8, ptr %beside.data, i64 %beside.bytes
  %begins_before = icmp ult ptr %beside.data, %given.end
  %ends_behind = icmp ugt ptr %beside.end, %given.data
  %shares = and i1 %begins_before, %ends_behind
  %b.next = add i64 %b, 1
  br i1 %shares, label %anything, label %given.beside
given.taken:
  call void @Py_IncRef(ptr %its_array)
  store ptr %its_array, ptr %results
  %given.slot = getelementptr ptr, ptr %data, i64 %inputs
  store ptr %given.data, ptr %given.slot
  br label %compute

output:
  %k = phi i64 [ 0, %outputs.begin ], [ %k.next, %output.made ]
  %slot = add i64 %inputs, %k
  %out_core.at = getelementptr %Kernel, ptr %kernel, i64 0, i32 8, i64 %slot, i32 0
  %out_core = load i64, ptr %out_core.at
  %out_rank.long = add i64 %out_core, %row_axes
  %out_rank = trunc i64 %out_rank.long to i32
  %out_sizes.at = getelementptr %Kernel, ptr %kernel, i64 0, i32 8, i64 %slot, i32 1
  %core_out_sizes = load ptr, ptr %out_sizes.at
  br label %size_copy
size_copy:
  %c = phi i64 [ 0, %output ], [ %c.next, %size_copied ]
  %sizes_left = icmp slt i64 %c, %out_core
  br i1 %sizes_left, label %size_copied, label %sizes_known
size_copied:
  %size_from = getelementptr i64, ptr %core_out_sizes, i64 %c
  %size_value = load i64, ptr %size_from
  %c.next = add i64 %c, 1
  %size_to = getelementptr i64, ptr %row_sizes, i64 %c.next
  store i64 %size_value, ptr %size_to
  br label %size_copy
sizes_known:
  %without_rows = icmp eq i64 %row_axes, 0
  %out_sizes = select i1 %without_rows, ptr %core_out_sizes, ptr %row_sizes
  call void @Py_IncRef(ptr %dtype)  ; the new array takes this reference
  %result = call ptr @PyArray_NewFromDescr(ptr %array_type, ptr %dtype, i32 %out_rank, ptr %out_sizes, ptr null, \
ptr null, i32 0, ptr null)
  %no_result = icmp eq ptr %result, null
  br i1 %no_result, label %output.failed, label %output.made
output.made:
  %result.slot = getelementptr ptr, ptr %results, i64 %k
  store ptr %result, ptr %result.slot
  %output_data.at = getelementptr %Array, ptr %result, i64 0, i32 2
  %output_data = load ptr, ptr %output_data.at
  %output_slot = getelementptr ptr, ptr %data, i64 %slot
  store ptr %output_data, ptr %output_slot
  %k.next = add i64 %k, 1
  %outputs_left = icmp slt i64 %k.next, %outputs
  br i1 %outputs_left, label %output, label %compute
output.failed:
  call void @release(ptr %results, i64 0, i64 %k)
  ret ptr null

compute:
  %loop = load ptr, ptr %kernel
  call void @PyUFunc_clearfperr()
  call void %loop(ptr %data, ptr %states, ptr %steps, ptr null)
  %float_flags = call i32 @PyUFunc_getfperr()
  %error = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %compute.failed, label %computed
computed:
  %flagged = icmp ne i32 %float_flags, 0
  br i1 %flagged, label %compute.again, label %finish
compute.failed:
  call void @release(ptr %results, i64 0, i64 %outputs)
  ret ptr null
compute.again:
  call void @release(ptr %results, i64 0, i64 %outputs)
  br label %anything

; One result, or a tuple.  PyArray_Return makes scalars of arrays without axes.
finish:
  %alone = icmp eq i64 %outputs, 1
  br i1 %alone, label %one, label %several
one:
  %only = load ptr, ptr %results
  br i1 %needs_new, label %one.new, label %one.given
one.given:
  ret ptr %only
one.new:
  %answer = call ptr @PyArray_Return(ptr %only)
  ret ptr %answer
several:
  %tuple = call ptr @PyTuple_New(i64 %outputs)
  %no_tuple = icmp eq ptr %tuple, null
  br i1 %no_tuple, label %compute.failed, label %member
member:
  %m = phi i64 [ 0, %several ], [ %m.next, %member.kept ]
  %m.next = add i64 %m, 1
  %member.at = getelementptr ptr, ptr %results, i64 %m
  %member.array = load ptr, ptr %member.at
  %member.value = call ptr @PyArray_Return(ptr %member.array)
  %no_member = icmp eq ptr %member.value, null
  br i1 %no_member, label %member.failed, label %member.kept
member.kept:
  %stored = call i32 @PyTuple_SetItem(ptr %tuple, i64 %m, ptr %member.value)
  %members_left = icmp slt i64 %m.next, %outputs
  br i1 %members_left, label %member, label %complete_tuple
member.failed:
  call void @release(ptr %results, i64 %m.next, i64 %outputs)
  call void @Py_DecRef(ptr %tuple)
  ret ptr null
complete_tuple:
  ret ptr %tuple

; Whatever else was given, as it was given.
anything:
  %reply = tail call ptr @call_general(ptr %general, ptr %given, i64 %count, ptr %keywords)
  ret ptr %reply
}}

define internal void @release(ptr %objects, i64 %start, i64 %stop) nounwind {{
entry:
  br label %next
next:
  %i = phi i64 [ %start, %entry ], [ %i.next, %object ]
  %more = icmp slt i64 %i, %stop
  br i1 %more, label %object, label %done
object:
  %object.at = getelementptr ptr, ptr %objects, i64 %i
  %this = load ptr, ptr %object.at
  call void @Py_DecRef(ptr %this)
  %i.next = add i64 %i, 1
  br label %next
done:
  ret void
}}

; The values of keyword arguments come after the positional ones; they are passed on as a dictionary.
define internal ptr @call_general(ptr %general, ptr %given, i64 %count, ptr %keywords) nounwind {{
entry:
  %none = icmp eq ptr %keywords, null
  br i1 %none, label %plain, label %named
plain:
  %plain.reply = tail call ptr @PyObject_VectorcallDict(ptr %general, ptr %given, i64 %count, ptr null)
  ret ptr %plain.reply
named:
  %dictionary = call ptr @PyDict_New()
  %no_dictionary = icmp eq ptr %dictionary, null
  br i1 %no_dictionary, label %failed, label %size
size:
  %names = call i64 @PyTuple_Size(ptr %keywords)
  br label %next
next:
  %i = phi i64 [ 0, %size ], [ %i.next, %kept ]
  %more = icmp slt i64 %i, %names
  br i1 %more, label %item, label %call
item:
  %name = call ptr @PyTuple_GetItem(ptr %keywords, i64 %i)
  %place = add i64 %count, %i
  %value.at = getelementptr ptr, ptr %given, i64 %place
  %value = load ptr, ptr %value.at
  %status = call i32 @PyDict_SetItem(ptr %dictionary, ptr %name, ptr %value)
  %i.next = add i64 %i, 1
  %good = icmp eq i32 %status, 0
  br i1 %good, label %kept, label %drop
kept:
  br label %next
drop:
  call void @Py_DecRef(ptr %dictionary)
  br label %failed
call:
  %reply = call ptr @PyObject_VectorcallDict(ptr %general, ptr %given, i64 %count, ptr %dictionary)
  call void @Py_DecRef(ptr %dictionary)
  ret ptr %reply
failed:
  ret ptr null
}}

declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyTuple_New(i64)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i64 @PyTuple_Size(ptr)
declare i32 @PyUnicode_CompareWithASCIIString(ptr, ptr)
declare ptr @PyDict_New()
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare ptr @PyObject_VectorcallDict(ptr, ptr, i64, ptr)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @PyArray_Return(ptr)
declare void @PyUFunc_clearfperr()
declare i32 @PyUFunc_getfperr()
"""
