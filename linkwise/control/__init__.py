"""Controllers: functions of time and state that give joint forces."""
